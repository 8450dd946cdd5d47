"""How good tracks are: CLEAR (MOTA, MOTP), identity (IDF1) and HOTA."""

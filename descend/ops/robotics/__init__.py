"""From pixels to joint angles: cameras, rigid motions, serial chains and their inverse."""

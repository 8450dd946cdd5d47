"""Why a network that fits its examples also answers others: closed forms, counts and bounds."""

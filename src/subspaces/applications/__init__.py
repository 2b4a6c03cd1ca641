"""Applications with conventions of their own: hyperspectral images and single cells."""

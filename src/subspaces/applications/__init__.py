"""Fields with conventions of their own: images of spectra, single cells."""

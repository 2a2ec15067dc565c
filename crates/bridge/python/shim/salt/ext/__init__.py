"""Old modules import `six` from here."""

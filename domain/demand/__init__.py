"""What is missing, exactly: the catalog pass, template choice, exactness, idle supply."""

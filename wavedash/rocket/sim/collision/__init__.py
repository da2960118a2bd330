"""What touches what: the field's geometry, contacts, rays, and the impulses that follow."""

"""What people see: figures as data, the charts that make them, and the renderers that draw them."""

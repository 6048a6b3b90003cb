"""What commands share: ways into a cloud, options, output, errors."""

"""Our requests through AWS's own container toolkit, of three years' images."""

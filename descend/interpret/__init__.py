"""Looking inside a trained network: filters, maps, heat. Functions of any nn.Module, a layer's name and images."""

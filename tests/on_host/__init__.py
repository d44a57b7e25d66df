"""C++ on the host: three headers with enough of CUDA to run kernels, and what builds programs behind them."""

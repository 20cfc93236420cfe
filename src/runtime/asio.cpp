// Boost.Asio and Beast are compiled once, here; elsewhere their headers only declare.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>

//! NIC

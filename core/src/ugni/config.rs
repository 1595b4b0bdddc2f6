//! The tunables of a uGNI module. Defaults that come from the Open MPI transport of 2012 to
//! 2023, whose job these machines take over, say so.

crate::tunables! {
    /// How a module behaves.
    pub struct Config {
        smsg_credits: Count = 32, 2 => 16_384, "Messages that a mailbox holds; one is kept for the goodbye. Open MPI: smsg_max_credits, 32.";
        smsg_max: Bytes = 8_192, 1 => 65_535, "Longest message. Open MPI: by job size, 8192 down to 256; GNI allows 65535.";
        slab_mailboxes: Count = 32, 1 => 65_536, "Mailboxes registered at once.";
        slabs_max: Count = 4_096, 1 => 1_048_576, "Slabs that may be registered: the bound on connections that live at once.";
        endpoints_max: Count = 16_777_216, 1 => 16_777_216, "Peers that a module knows at most; Aries event data has 24 bits.";
        waiting_max: Count = 65_536, 1 => 4_294_967_295, "Messages that may wait for one peer; more are failed at once.";
        copies_max: Count = 4_096, 1 => 4_294_967_295, "Copied messages that may be unanswered at a time. Open MPI: free_list_max, 4096.";
        local_cq: Count = 8_192, 4 => 16_777_216, "Entries of the local queue. Open MPI: local_cq_size, 8192.";
        local_cq_reserve: Count = 1_024, 1 => 16_777_215, "Entries of the local queue left to credit returns, which need them to go out.";
        remote_cq: Count = 40_000, 1 => 16_777_216, "Entries of the remote queue. Open MPI: remote_cq_size, 40000.";
        smsg_retries: Count = 16, 0 => 250, "Retransmissions of a message before it ends in a transaction error. Open MPI: smsg_max_retries, 16.";
        connect_tries: Count = 8, 0 => 250, "Repetitions of one step of an attempt before it fails.";
        backoff_doublings: Count = 6, 0 => 40, "How often a waiting time doubles before it stays.";
        resolve_timeout: Time = 1_000_000_000_000, 0 => 9_000_000_000_000_000_000, "Wait for a peer's address before asking again.";
        mailbox_retry: Time = 100_000_000, 0 => 9_000_000_000_000_000_000, "Wait for a mailbox before trying again.";
        session_retry: Time = 100_000_000, 0 => 9_000_000_000_000_000_000, "Retry of a post that the session rule refused, should no completion free it.";
        post_retry: Time = 20_000_000, 0 => 9_000_000_000_000_000_000, "First wait after a post was refused for memory, or ended badly.";
        answer_timeout: Time = 10_000_000_000, 0 => 9_000_000_000_000_000_000, "First wait for the peer's record before ours is sent again.";
        close_timeout: Time = 1_000_000_000_000, 0 => 9_000_000_000_000_000_000, "Wait for the peer's goodbye before the connection is broken.";
        unbind_retry: Time = 10_000_000, 0 => 9_000_000_000_000_000_000, "First wait before an endpoint that is still busy is unbound again.";
        send_retry: Time = 1_000_000, 0 => 9_000_000_000_000_000_000, "Wait before a message that the device refused is sent again.";
        stall_timeout: Time = 1_000_000_000_000, 0 => 9_000_000_000_000_000_000, "Wait for credits before the peer is asked whether it lives; it takes the place of Open MPI's wait for ever.";
        mailbox_rest: Time = 10_000_000_000, 0 => 9_000_000_000_000_000_000, "How long a mailbox rests between two leases: longer than any packet lives.";
        rescan_delay: Time = 10_000_000, 0 => 9_000_000_000_000_000_000, "After an overrun, wait before all mailboxes are looked at again: longer than an event runs ahead of its message.";
        rescan_passes: Count = 4, 2 => 1_000, "Looks at all mailboxes after an overrun, at most; fewer if a look finds nothing.";
        relook_delay: Time = 0, 0 => 9_000_000_000_000_000_000, "After an event, look into its mailbox once more after this wait: longer than an event runs ahead of its message, where no later event is sure to come; 0: one is.";
        eager_max: Bytes = 8_192, 1 => 67_108_864, "Longest message that a peer fetches out of our memory when it does not fit a mailbox. Open MPI: the eager limit, 8192.";
        eager_buffers: Count = 64, 1 => 65_535, "Buffers of that length for messages that go, and as many for those that come; fewer if a region of 4 GiB does not hold them. Open MPI: 16 to 128 each.";
        fma_put_max: Bytes = 4_096, 0 => 65_536, "Longest put by FMA; longer ones go by BTE. Open MPI: fma_put_limit, 4096.";
        fma_get_max: Bytes = 2_048, 0 => 65_536, "Longest get by FMA; longer ones go by BTE. Open MPI: fma_get_limit, 2048.";
        get_max: Bytes = 1_048_576, 4 => 2_147_483_644, "Longest get; for more the peer is asked to put. Open MPI: get_limit, 1 MiB.";
        rdma_cq: Count = 1_024, 2 => 65_535, "Entries of the queue of operations on remote memory, so as many may be out. Open MPI: local_rdma_cq_size, 1024.";
        bte_max: Count = 1_024, 1 => 65_535, "Of these, as many by BTE. Open MPI from 3.0: local_rdma_cq_size.";
        rdma_waiting_max: Count = 65_536, 1 => 4_294_967_295, "Operations on remote memory that may wait for one peer; more are failed at once.";
        rdma_retries: Count = 16, 0 => 250, "How often an operation is posted again after a refusal or a recoverable error. Open MPI: rdma_max_retries, 16.";
        rdma_retry: Time = 1_000_000, 0 => 9_000_000_000_000_000_000, "First wait before that.";
        regions_max: Count = 1_200, 1 => 1_048_576, "Registrations in all. Open MPI: max_mem_reg, 1200 by all procs of a node where the limit is not known.";
        regions_reserve: Count = 20, 0 => 1_048_576, "Of these, kept for mailboxes and other buffers of the transport.";
        wake_peers: Flag = 0, 0 => 1, "A message also raises an interrupt at its receiver, which may sleep.";
        reconnect: Flag = 1, 0 => 1, "What waits when the peer closes starts a new connection, or fails.";
    }
}

impl Config {
    /// Bytes of a buffer for a long message: whole words.
    pub(super) const fn eager_buffer(&self) -> u32 {
        (self.eager_max as u32).next_multiple_of(4)
    }

    /// How many of these there are: as many as are asked for, and as a region has offsets for.
    pub(super) fn eager_count(&self) -> u16 {
        let fit = u64::from(u32::MAX / self.eager_buffer().max(1));
        u16::try_from(self.eager_buffers.min(fit)).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_for_a_long_message_lies_within_its_region() {
        let count = |eager_max, eager_buffers| {
            let config = Config { eager_max, eager_buffers, ..Config::DEFAULT };
            let count = config.eager_count();
            let end = u64::from(count) * u64::from(config.eager_buffer());
            assert!(end <= u64::from(u32::MAX), "{eager_max} x {eager_buffers}");
            count
        };
        assert_eq!(count(8_192, 64), 64);
        assert_eq!(count(1, 65_535), 65_535);
        assert_eq!(count(65_536, 65_535), 65_535);
        assert_eq!(count(67_108_864, 63), 63);
        assert_eq!(count(67_108_864, 64), 63, "the 64th would end past the last offset");
    }
}

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
        reconnect: Flag = 1, 0 => 1, "What waits when the peer closes starts a new connection, or fails.";
    }
}

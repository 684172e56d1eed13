/**
 * Returns a notice in place of an empty ladder. A drachtio-server does not pass on each message. A call may still have
 * messages that the embedded edge stored before the change.
 */
export const ladderUnavailable = (external: boolean, messages: readonly unknown[]): string | null =>
  external && messages.length === 0
    ? 'SIP messages are kept by the embedded edge; they are not available with an external drachtio-server.'
    : null

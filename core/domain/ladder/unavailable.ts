/**
 * Shown in place of an empty ladder. A drachtio-server does not show signaling each message; a call can still have
 * messages that the embedded edge kept before the change.
 */
export const ladderUnavailable = (external: boolean, messages: readonly unknown[]): string | null =>
  external && messages.length === 0
    ? 'SIP messages are kept by the embedded edge; they are not available with an external drachtio-server.'
    : null

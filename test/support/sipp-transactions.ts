interface Sent {
  readonly name: string
  readonly method: string
  answered: boolean
}

/** A step that sends a message, or the beginning of one that receives a response. */
const STEPS = /<send\b([^>]*)>([\s\S]*?)<\/send>|<recv\b(?=[^>]*\bresponse=)([^>]*?)(\/?)>/g

/**
 * Tells SIPp which request of a scenario each response answers. Otherwise it compares only the status and a method that
 * it has sent, takes a 200 that a busy machine sends again for the answer to its next request, and loses its place. A
 * response that comes again is then acknowledged or ignored, over every transport.
 *
 * A response belongs to the latest request without a final one. SIPp refuses a request that nothing answers, and an
 * INVITE without an ACK. Such a request stays as it is, and so does a scenario with an INVITE that gets no ACK.
 */
export function withTransactions(steps: string): string {
  const requests: Sent[] = []
  const responses = new Set<string>()
  const acknowledged = new Set<string>()
  const open = (): Sent | undefined => requests.findLast(({ answered }) => !answered)
  const marked = steps.replaceAll(STEPS, (whole, sends, message = '', receives, closed = '') => {
    if (sends === undefined) {
      const sent = open()
      if (!sent) return whole
      responses.add(sent.name)
      const final = Number(/\bresponse="(\d+)"/.exec(receives)?.[1]) >= 200
      if (final && !/\boptional="true"/.test(receives)) sent.answered = true
      return `<recv${receives} response_txn="${sent.name}"${closed}>`
    }
    const method = /^\s*(?:<!\[CDATA\[)?\s*([A-Z]+) \S+ SIP\/2\.0/.exec(message)?.[1]
    if (method === undefined) return whole
    if (method === 'ACK') {
      const invites = requests.filter(sent => sent.method === 'INVITE')
      const invite = invites.findLast(sent => sent.answered && !acknowledged.has(sent.name)) ?? invites.at(-1)
      if (!invite) return whole
      acknowledged.add(invite.name)
      return whole.replace('<send', `<send ack_txn="${invite.name}"`)
    }
    const name = `txn${requests.length + 1}`
    requests.push({ name, method, answered: false })
    return whole.replace('<send', `<send start_txn="${name}"`)
  })
  if (requests.some(({ name, method }) => method === 'INVITE' && !acknowledged.has(name))) return steps
  const unanswered = requests.filter(({ name }) => !responses.has(name))
  return unanswered.reduce((text, { name }) => text.replaceAll(new RegExp(` \\w+_txn="${name}"`, 'g'), ''), marked)
}

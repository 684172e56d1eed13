interface Sent {
  readonly name: string
  readonly method: string
  answered: boolean
}

/** A step that sends a message, or the beginning of one that receives a response. */
const STEPS = /<send\b([^>]*)>([\s\S]*?)<\/send>|<recv\b(?=[^>]*\bresponse=)([^>]*?)(\/?)>/g

/**
 * Tells SIPp which request of a scenario each response answers, except an INVITE. Otherwise it compares only the status
 * and a method that it has sent, takes a 200 to its INVITE that a busy edge sends again for the answer to its next
 * request, and loses its place. Then it acknowledges that 200 again, and ignores other responses that come again.
 *
 * A response belongs to the latest request without a final one. SIPp aborts when an answer to the INVITE of such a
 * transaction comes again before its ACK, and it refuses a transaction that nothing answers. It acknowledges nothing in
 * a scenario without an ACK, which stays as it is.
 */
export function withTransactions(steps: string): string {
  const requests: Sent[] = []
  const answered = new Set<string>()
  let acknowledges = false
  const marked = steps.replaceAll(STEPS, (whole, sends, message = '', receives, closed = '') => {
    if (sends === undefined) {
      const sent = requests.findLast(request => !request.answered)
      if (!sent) return whole
      const final = Number(/\bresponse="(\d+)"/.exec(receives)?.[1]) >= 200
      if (final && !/\boptional="true"/.test(receives)) sent.answered = true
      if (sent.method === 'INVITE') return whole
      answered.add(sent.name)
      return `<recv${receives} response_txn="${sent.name}"${closed}>`
    }
    const method = /^\s*(?:<!\[CDATA\[)?\s*([A-Z]+) \S+ SIP\/2\.0/.exec(message)?.[1]
    if (method === undefined) return whole
    if (method === 'ACK') {
      acknowledges = true
      return whole
    }
    const name = `txn${requests.length + 1}`
    requests.push({ name, method, answered: false })
    return method === 'INVITE' ? whole : whole.replace('<send', `<send start_txn="${name}"`)
  })
  if (!acknowledges && requests.some(({ method }) => method === 'INVITE')) return steps
  const unanswered = requests.filter(({ name }) => !answered.has(name))
  return unanswered.reduce((text, { name }) => text.replaceAll(` start_txn="${name}"`, ''), marked)
}

import { Draft } from './message.ts'

// Reads fields back from a request that we sent. The stack keeps only its text.

/** Returns the first value of a header in a message that we wrote. */
export function headerOf(text: string, name: string): string | undefined {
  const at = text.indexOf(`\r\n${name}: `)
  const head_end = text.indexOf('\r\n\r\n')
  if (at < 0 || at > head_end) return undefined
  return text.slice(at + name.length + 4, text.indexOf('\r\n', at + 2))
}

/** Returns the branch of the topmost Via. */
export function branchOf(text: string): string {
  const via = headerOf(text, 'Via') ?? ''
  return via.slice(via.indexOf('branch=') + 7).split(';')[0] ?? ''
}

export function bodyOf(text: string): string {
  return text.slice(text.indexOf('\r\n\r\n') + 4)
}

/** Returns the same request without its body. */
export function withoutBody(text: string): string {
  const head = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n')
  const kept = head.filter(line => !/^Content-(Length|Type):/i.test(line))
  return `${[...kept, 'Content-Length: 0'].join('\r\n')}\r\n\r\n`
}

/**
 * Drafts the CANCEL of an INVITE (RFC 3261 §9.1). Request-URI, Call-ID, To, From, CSeq number, Route and the topmost
 * Via are the INVITE's.
 */
export function cancelOf(invite: string): Draft {
  const head = invite.slice(0, invite.indexOf('\r\n\r\n')).split('\r\n')
  const draft = new Draft(`CANCEL${(head[0] ?? '').slice('INVITE'.length)}`)
  let via = false
  for (const line of head.slice(1)) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon)
    const value = line.slice(colon + 2)
    if (name === 'Via') {
      if (!via) draft.add('Via', value)
      via = true
    } else if (name === 'Max-Forwards') draft.add(name, '70')
    else if (name === 'Route' || name === 'From' || name === 'To' || name === 'Call-ID') draft.add(name, value)
    else if (name === 'CSeq') draft.add('CSeq', value.replace('INVITE', 'CANCEL'))
  }
  return draft
}

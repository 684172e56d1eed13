// Compares what the edge sent with what the reference sent, except for identifiers. Each recorded identifier (tag,
// branch, Call-ID, transaction id, port, sequence number) must correspond to one actual identifier throughout a flow.

export class Identifiers {
  readonly #actual = new Map<string, string>()
  readonly #recorded = new Map<string, string>()
  /** Differences between actual and recorded sequence numbers, by recorded Call-ID; '' has the latest. */
  readonly #shift = new Map<string, number>()

  /** Fixes the difference for all sequence numbers of a call; false when it already has another difference. */
  sequence(call_id: string, recorded: number, actual: number): boolean {
    const known = this.#shift.get(call_id)
    if (known !== undefined) return known === actual - recorded
    this.#shift.set(call_id, actual - recorded)
    this.#shift.set('', actual - recorded)
    return true
  }

  #shiftIn(text: string): number {
    for (const [call_id, shift] of this.#shift) if (call_id !== '' && text.includes(call_id)) return shift
    return this.#shift.get('') ?? 0
  }

  /** Fixes a pair; false when the recorded identifier already has another counterpart. */
  pair(recorded: string, actual: string): boolean {
    const known = this.#actual.get(recorded)
    if (known !== undefined) return known === actual
    this.#actual.set(recorded, actual)
    this.#recorded.set(actual, recorded)
    return true
  }

  actual(recorded: string): string | undefined {
    return this.#actual.get(recorded)
  }

  /** Returns a recorded text with the actual identifiers. */
  translate(text: string): string {
    const shift = this.#shiftIn(text)
    return text.replaceAll(TOKEN, token => {
      if (/^1230\d{5}$/.test(token)) return String(Number(token) + shift)
      return this.#actual.get(token) ?? token
    })
  }

  /** Begins a comparison. `keep` fixes its pairs when it succeeds. */
  trial(): Trial {
    const fresh = new Map<string, string>()
    const numbers: [string, number, number][] = []
    return {
      sequence: (call_id, recorded, actual) => {
        const known = this.#shift.get(call_id) ?? numbers.find(n => n[0] === call_id)?.[2]
        if (known !== undefined && known !== actual - recorded) return false
        numbers.push([call_id, recorded, actual - recorded])
        return true
      },
      pair: (recorded, actual) => {
        const known = this.#actual.get(recorded) ?? fresh.get(recorded)
        if (known !== undefined) return known === actual
        // Two recorded branches or transaction ids must not correspond to one actual one. Two tags may: the reference
        // gives a CANCEL and its INVITE different tags.
        if ((actual.startsWith('z9hG4bK') || actual.length === 36) && this.#recorded.has(actual)) return false
        fresh.set(recorded, actual)
        return true
      },
      keep: () => {
        for (const [recorded, actual] of fresh) this.pair(recorded, actual)
        for (const [call_id, recorded, shift] of numbers) this.sequence(call_id, recorded, recorded + shift)
      },
    }
  }
}

interface Trial {
  pair(recorded: string, actual: string): boolean
  sequence(call_id: string, recorded: number, actual: number): boolean
  keep(): void
}

const TOKEN = /[A-Za-z0-9_.-]+/g

function isIdentifier(token: string): boolean {
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(token)) return true
  if (token.startsWith('z9hG4bK')) return true
  if (/^\d+$/.test(token)) return token.length >= 5
  return /^[A-Za-z0-9]{12,14}$/.test(token) && (token.length === 13 || /\d/.test(token))
}

/** Removes differences in notation that have no meaning (docs/drachtio.md). */
function normalise(line: string): string {
  let out = line
  if (/^(proxy-)?authori[sz]ation:/i.test(out) || /-authenticate:/i.test(out)) out = out.replaceAll(/,\s+/g, ',')
  // Our Contact tells a peer that was called over TCP to use TCP. In To, the reference writes the parameters of a
  // request-URI after the angle brackets, or omits the brackets.
  if (out.startsWith('Contact: ')) out = out.replace(/;transport=tcp/, '')
  const to = /^To: (?:<([^>]+)>|(sips?:[^;]+))((?:;transport=\w+)?)((?:;tag=.*)?)$/.exec(out)
  if (to) out = `To: <${to[1] ?? to[2]}${to[3] ?? ''}>${to[4] ?? ''}`
  return out
}

/** Returns the first difference other than identifiers. Without one, returns undefined and keeps the pairs found. */
export function difference(
  ids: Identifiers,
  recorded: string,
  actual: string,
  meta: boolean,
  whole = true,
): string | undefined {
  const trial = ids.trial()
  const [r_meta, r_text] = meta ? splitMeta(recorded) : ['', recorded]
  const [a_meta, a_text] = meta ? splitMeta(actual) : ['', actual]
  if (meta) {
    const fault = metaDifference(trial.pair, r_meta, a_meta, a_text)
    if (fault !== undefined) return fault
  }
  const fault = textDifference(trial, r_text, a_text, whole)
  if (fault !== undefined) return fault
  trial.keep()
  return undefined
}

function splitMeta(payload: string): [string, string] {
  const end = payload.indexOf('\r\n')
  return end < 0 ? [payload, ''] : [payload.slice(0, end), payload.slice(end + 2)]
}

type Pair = (recorded: string, actual: string) => boolean

function metaDifference(pair: Pair, recorded: string, actual: string, text: string): string | undefined {
  const r = recorded.split('|')
  const a = actual.split('|')
  if (r.length !== a.length) return `meta has ${a.length} fields instead of ${r.length}: ${actual} / ${recorded}`
  const reply = r[1] === 'response'
  // The position of the byte count in the forms of meta lines. The protocol is 1 after it, the time 4.
  const base = reply ? 5 : r[1] === 'sip' ? 3 : -10
  for (let i = 1; i < r.length; i++) {
    const rv = r[i] ?? ''
    const av = a[i] ?? ''
    if (rv === av) continue
    if (reply && i === 5 && /^v\d/.test(rv)) continue
    if (reply && (i === 4 || i === 6) && rv.includes('/')) {
      const fault = unify(pair, rv.split(',').sort().join(','), av.split(',').sort().join(','))
      if (fault !== undefined) return fault
      continue
    }
    if (reply && i === 5 && /^v\d/.test(av)) continue
    if (r[1]?.startsWith('cdr:') && i === 3) continue
    if (i === base) continue
    // The reference omits the protocol of ACK and of responses to non-INVITE requests. We report it.
    if (i === base + 1 && rv === '') continue
    if (i === base + 4) continue
    const fault = unify(pair, rv, av)
    if (fault !== undefined) return `meta field ${i}: ${fault}`
  }
  if (base > 0 && text !== '' && a[1] === 'response' && a[base] !== '0' && Number(a[base]) !== text.length) {
    return `meta says ${a[base]} bytes, the message has ${text.length}`
  }
  return undefined
}

function textDifference(trial: Trial, recorded: string, actual: string, whole: boolean): string | undefined {
  const { pair } = trial
  const [r_head, r_body] = splitBody(recorded)
  const [a_head, a_body] = splitBody(actual)
  const { r, a } = withoutExtras(r_head.split('\r\n'), a_head.split('\r\n'))
  const call_id = /^(?:Call-ID|i): (.*)$/im.exec(r_head)?.[1]?.trim() ?? ''
  for (let i = 0; i < Math.max(r.length, a.length); i++) {
    const rl = normalise(r[i] ?? '')
    const al = normalise(a[i] ?? '')
    if (rl === al) continue
    const rs = /^CSeq: (\d{6,}) (\w+)$/.exec(rl)
    const as = /^CSeq: (\d+) (\w+)$/.exec(al)
    if (rs && as && rs[2] === as[2]) {
      if (trial.sequence(call_id, Number(rs[1]), Number(as[1]))) continue
      return `sequence number: "${al}" instead of "${rl}"`
    }
    if (/^RAck: /.test(rl) && /^RAck: /.test(al)) continue
    const fault = unify(pair, rl, al)
    if (fault !== undefined) return fault
  }
  if (r_body === a_body) return undefined
  if (!whole && a_body.startsWith(r_body)) return undefined
  return r_body === a_body ? undefined : `body "${a_body.slice(0, 60)}" instead of "${r_body.slice(0, 60)}"`
}

// Removes header differences in which the reference deviates from the RFCs. It omits Contact from UPDATE and its 2xx
// (RFC 3311 §5.1 requires it) and from 18x (RFC 3261 §12.1.1: they create a dialog), and adds a meaningless one to
// failures of a re-INVITE. Its proxy omits Max-Forwards from the ACK of a failure (RFC 3261 §8.1.1 requires it).
function withoutExtras(r: string[], sent: string[]): { r: string[]; a: string[] } {
  let a = sent
  if (a[0]?.startsWith('ACK ')) {
    // Our ACK has the credentials of its INVITE (RFC 3261 §22.1), and the reference omits Max-Forwards.
    const extra = ['Max-Forwards: ', 'Proxy-Authorization: ', 'Authorization: '].filter(
      name => !r.some(line => line.startsWith(name)),
    )
    a = a.filter(line => !extra.some(name => line.startsWith(name)))
  }
  // Its session refreshes lack `Supported: timer` (RFC 4028 §7.1 requires it in every request).
  const refresh = r[0]?.startsWith('INVITE ') && r.some(line => line.startsWith('Session-Expires: '))
  if (refresh && !r.includes('Supported: timer')) return { r, a: a.filter(line => line !== 'Supported: timer') }
  // It also relays requests of proxied dialogs without decrementing Max-Forwards (RFC 3261 §16.6 step 3).
  const relayed = r.filter(line => line.startsWith('Via: ')).length > 1 && r.includes('Max-Forwards: 70')
  if (relayed && a.includes('Max-Forwards: 69')) {
    return { r: r.map(line => (line === 'Max-Forwards: 70' ? 'Max-Forwards: 69' : line)), a }
  }
  // Its 503 does not say when to try again (RFC 3261 §21.5.4).
  if (r[0]?.startsWith('SIP/2.0 503 ')) return { r, a: a.filter(line => !line.startsWith('Retry-After: ')) }
  const cseq = r.find(line => line.startsWith('CSeq: ')) ?? ''
  const other = /^SIP\/2\.0 (1[89]|[4-6])/.test(r[0] ?? '')
  if (!cseq.endsWith(' UPDATE') && !(other && cseq.endsWith(' INVITE'))) return { r, a }
  const contact = (line: string): boolean => line.startsWith('Contact: ')
  if (r.some(contact) === a.some(contact)) return { r, a }
  return { r: r.filter(line => !contact(line)), a: a.filter(line => !contact(line)) }
}

function splitBody(text: string): [string, string] {
  const at = text.indexOf('\r\n\r\n')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 4)]
}

function unify(pair: Pair, recorded: string, actual: string): string | undefined {
  const r = recorded.split(/([A-Za-z0-9_.-]+)/)
  const a = actual.split(/([A-Za-z0-9_.-]+)/)
  const fault = `"${actual}" instead of "${recorded}"`
  if (r.length !== a.length) return fault
  for (let i = 0; i < r.length; i++) {
    const rt = r[i] ?? ''
    const at = a[i] ?? ''
    if (i % 2 === 0 || !isIdentifier(rt)) {
      if (rt !== at) return fault
    } else if (!pair(rt, at)) return `${fault} (${rt} already has another counterpart)`
  }
  return undefined
}

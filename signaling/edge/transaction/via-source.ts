import type { SipMessage } from '../sip/message.ts'
import { splitList, type Via } from '../sip/uri.ts'
import type { Received } from '../transport/types.ts'

/** Writes the packet's source into the topmost Via: always `rport`, and `received` when the sent-by host differs. */
export function fixVia(message: SipMessage, received: Received): void {
  for (const h of message.headers) {
    if (h.kind.id !== 'via') continue
    if (!h.value.includes(',')) {
      h.value = viaWithSource(h.value, message.via, received)
      return
    }
    const values = splitList(h.value)
    values[0] = viaWithSource(values[0] ?? '', message.via, received)
    h.value = values.join(', ')
    return
  }
}

function viaWithSource(via: string, parsed: Via | undefined, { source }: Received): string {
  const { host, port } = source
  const sent_by = parsed?.host ?? ''
  if (parsed && !parsed.params.has('rport') && !parsed.params.has('received'))
    return `${via}${sent_by.toLowerCase() === host.toLowerCase() ? '' : `;received=${host}`};rport=${port}`
  let rport = false
  let [out = '', ...params] = via.split(';')
  for (const param of params) {
    const equals = param.indexOf('=')
    const name = (equals < 0 ? param : param.slice(0, equals)).trim().toLowerCase()
    if (name === 'received') continue
    if (name === 'rport') rport = true
    out += name === 'rport' ? `;rport=${port}` : `;${param}`
  }
  if (sent_by.toLowerCase() !== host.toLowerCase()) out += `;received=${host}`
  return rport ? out : `${out};rport=${port}`
}

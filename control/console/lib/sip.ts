import type { LadderMessage } from './types.ts'

interface SipText {
  readonly first: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

export function parseSip(text: string): SipText {
  const [head = '', ...rest] = text.split(/\r?\n\r?\n/)
  const [first = '', ...lines] = head.split(/\r?\n/)
  const headers = lines.map(line => {
    const at = line.indexOf(':')
    return at < 0 ? ([line, ''] as const) : ([line.slice(0, at), line.slice(at + 1).trim()] as const)
  })
  return { first, headers, body: rest.join('\n\n') }
}

const headerOf = (message: SipText, name: string): string =>
  message.headers.find(([given]) => given.toLowerCase() === name)?.[1] ?? ''

/** Returns `INVITE` for a request, `200 OK (INVITE)` for a response, with the kind of its body. */
export function labelOf(text: string): { readonly label: string; readonly tone: '' | 'good' | 'bad' } {
  const message = parseSip(text)
  const response = /^SIP\/2\.0 (\d{3}) (.*)$/.exec(message.first)
  const sdp = /^application\/sdp/i.test(headerOf(message, 'content-type')) ? ' · SDP' : ''
  if (!response) return { label: `${message.first.split(' ')[0]}${sdp}`, tone: '' }
  const method = headerOf(message, 'cseq').split(/\s+/)[1] ?? ''
  const code = Number(response[1])
  return {
    label: `${code} ${response[2]}${method === 'INVITE' ? '' : ` (${method})`}${sdp}`,
    tone:
      code >= 400 && code !== 401 && code !== 407
        ? 'bad'
        : code >= 200 && code < 300 && method === 'INVITE'
          ? 'good'
          : '',
  }
}

/** Returns the host of an address such as 127.0.0.1:5060 or [::1]:5060. */
const hostOf = (address: string): string => /^(\[[^\]]+\]|[^:]+)/.exec(address)?.[1] ?? address

export interface Lane {
  readonly id: string
  readonly name: string
  readonly sub: string
}

const methodOf = (text: string): string =>
  /^SIP\/2\.0/.test(text) ? (/^cseq:\s*\d+\s+(\w+)/im.exec(text)?.[1] ?? '') : (text.split(' ')[0] ?? '')

/** Reports whether a message is a keep-alive or a registration, which do not belong to a call. */
export const isNoise = (message: LadderMessage): boolean => ['OPTIONS', 'REGISTER'].includes(methodOf(message.text))

/** Returns the peers in order of appearance, with the platform between the first and the others. */
export function lanesOf(messages: readonly LadderMessage[]): readonly Lane[] {
  const peers: Lane[] = []
  for (const { remote, protocol } of messages)
    if (!peers.some(lane => lane.id === remote)) peers.push({ id: remote, name: remote, sub: protocol.toUpperCase() })
  const [first, ...others] = peers
  const local = [...new Set(messages.map(message => message.local))].join(', ')
  const platform: Lane = { id: '', name: 'Strowger', sub: local.length > 30 ? hostOf(local) : local }
  return first ? [first, platform, ...others] : [platform]
}

/** Compares two messages line by line: common lines, removed lines and added lines. */
export function diffLines(
  left: string,
  right: string,
): readonly { readonly mark: ' ' | '-' | '+'; readonly line: string }[] {
  const a = left.split(/\r?\n/)
  const b = right.split(/\r?\n/)
  const longest: number[][] = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0))
  const cell = (i: number, j: number): number => longest[i]?.[j] ?? 0
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const row = longest[i]
      if (row) row[j] = a[i] === b[j] ? cell(i + 1, j + 1) + 1 : Math.max(cell(i + 1, j), cell(i, j + 1))
    }
  const out: { mark: ' ' | '-' | '+'; line: string }[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ mark: ' ', line: a[i] ?? '' })
      i += 1
      j += 1
    } else if (j >= b.length || (i < a.length && cell(i + 1, j) >= cell(i, j + 1))) {
      out.push({ mark: '-', line: a[i] ?? '' })
      i += 1
    } else {
      out.push({ mark: '+', line: b[j] ?? '' })
      j += 1
    }
  }
  return out
}

// rtpengine's control protocol: bencoded dictionaries over UDP. Each follows a cookie that the answer repeats.
import { randomUUID } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'

export type Bencoded = string | number | readonly Bencoded[] | { readonly [key: string]: Bencoded }

function encode(value: Bencoded): string {
  if (typeof value === 'string') return `${Buffer.byteLength(value)}:${value}`
  if (typeof value === 'number') return `i${value}e`
  if (Array.isArray(value)) return `l${value.map(encode).join('')}e`
  const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `d${pairs.map(([key, item]) => encode(key) + encode(item as Bencoded)).join('')}e`
}

/** Decodes a dictionary of strings. Skips values of other types. */
function decode(text: string): Record<string, string> {
  let at = 0
  const read = (): Bencoded => {
    const kind = text[at]
    if (kind === 'i') {
      const end = text.indexOf('e', at)
      const value = Number(text.slice(at + 1, end))
      at = end + 1
      return value
    }
    if (kind === 'l' || kind === 'd') {
      at++
      const items: Bencoded[] = []
      while (at < text.length && text[at] !== 'e') items.push(read())
      at++
      if (kind === 'l') return items
      return Object.fromEntries(items.flatMap((key, n) => (n % 2 ? [] : [[String(key), items[n + 1] ?? '']])))
    }
    const colon = text.indexOf(':', at)
    const length = Number(text.slice(at, colon))
    at = colon + 1 + length
    return text.slice(colon + 1, at)
  }
  const dictionary = read()
  if (typeof dictionary !== 'object' || Array.isArray(dictionary)) return {}
  return Object.fromEntries(Object.entries(dictionary).filter(([, value]) => typeof value === 'string')) as Record<
    string,
    string
  >
}

export class NgClient {
  readonly #socket: Socket = createSocket('udp4')
  readonly #port: number
  readonly #waiting = new Map<string, (answer: string) => void>()

  constructor(port: number) {
    this.#port = port
    this.#socket.on('message', message => {
      const text = message.toString('latin1')
      const space = text.indexOf(' ')
      this.#waiting.get(text.slice(0, space))?.(text.slice(space + 1))
    })
  }

  /** Sends a request and repeats it every 500 ms, because UDP may lose it. Gives up after `limit_ms`. */
  async request(command: { readonly [key: string]: Bencoded }, limit_ms = 10_000): Promise<Record<string, string>> {
    const cookie = randomUUID()
    const send = () => this.#socket.send(`${cookie} ${encode(command)}`, this.#port, '127.0.0.1')
    const again = setInterval(send, 500)
    let giveUp: NodeJS.Timeout | undefined
    try {
      const answer = await new Promise<string>((resolve, reject) => {
        this.#waiting.set(cookie, resolve)
        giveUp = setTimeout(() => reject(new Error(`rtpengine did not answer ${command['command']}`)), limit_ms)
        send()
      })
      const fields = decode(answer)
      if (fields['result'] === 'error') throw new Error(`rtpengine: ${fields['error-reason']}`)
      return fields
    } finally {
      clearInterval(again)
      clearTimeout(giveUp)
      this.#waiting.delete(cookie)
    }
  }

  close(): void {
    this.#socket.close()
  }
}

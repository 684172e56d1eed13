import { parseAddress } from '../identity/address.ts'

/** Where a platform tells its peers that SIP is served. */
export interface ServedAt {
  readonly hosts: readonly string[]
  readonly sip_port: number
  readonly sips_port: number
  readonly ws_port: number
}

/**
 * The listening points that a drachtio-server should have and has not; `told` is its own list, `proto/host:port` with
 * commas. Peers, our Contacts and SDP name these: where they are missing, calls fail one-sidedly.
 */
export function missingContacts(told: string, { hosts, sip_port, sips_port, ws_port }: ServedAt): string[] {
  const there = new Set(told.split(',').map(normal))
  // One port of a drachtio-server serves ws or wss, not both.
  const wanted: readonly (readonly [names: readonly string[], port: number])[] = [
    [['udp'], sip_port],
    [['tcp'], sip_port],
    [['tls'], sips_port],
    [['ws', 'wss'], ws_port],
  ]
  return hosts.flatMap(host =>
    wanted.flatMap(([names, port]) => {
      const contacts = names.map(name => `${name}/${host.includes(':') ? `[${host}]` : host}:${port}`)
      return contacts.some(contact => there.has(normal(contact))) ? [] : [contacts.join(' or ')]
    }),
  )
}

/** IPv6 addresses have several spellings. */
function normal(contact: string): string {
  const [, protocol, host, port] = /^\s*(\w+)\/\[?(.*?)\]?:(\d+)\s*$/.exec(contact) ?? []
  if (protocol === undefined || host === undefined) return contact
  const words = parseAddress(host)?.words.join('.') ?? host.toLowerCase()
  return `${protocol.toLowerCase()}/${words}:${port}`
}

import { parseAddress } from '../identity/address.ts'

/** The SIP addresses that a platform announces to its peers. */
export interface ServedAt {
  readonly hosts: readonly string[]
  readonly sip_port: number
  readonly sips_port: number
  readonly ws_port: number
}

/**
 * Returns the listening points that a drachtio-server lacks. `reported` is its own list, `proto/host:port` separated by
 * commas. Peers, our Contacts and our SDP use these points; without them calls fail in one direction.
 */
export function missingContacts(reported: string, { hosts, sip_port, sips_port, ws_port }: ServedAt): string[] {
  const there = new Set(reported.split(',').map(normal))
  // A port of a drachtio-server serves either ws or wss.
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

/** Returns the hosts in a server's list of its listening points, each once. */
export const listeningHosts = (reported: string): string[] => [
  ...new Set([...reported.matchAll(/\w+\/\[?([^,\]]*?)\]?:\d+/g)].map(([, host = '']) => host)),
]

/** Normalizes a contact, because IPv6 addresses have several spellings. */
function normal(contact: string): string {
  const [, protocol, host, port] = /^\s*(\w+)\/\[?(.*?)\]?:(\d+)\s*$/.exec(contact) ?? []
  if (protocol === undefined || host === undefined) return contact
  const words = parseAddress(host)?.words.join('.') ?? host.toLowerCase()
  return `${protocol.toLowerCase()}/${words}:${port}`
}

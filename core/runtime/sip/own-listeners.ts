import { networkInterfaces } from 'node:os'
import { compileSources, parseAddress } from '../../domain/identity/index.ts'
import type { ServedAt } from '../../domain/network/contacts.ts'
import type { HostPort, OwnListeners } from '../../domain/network/peer-addresses.ts'
import { parseUri } from '../../domain/sip/uri.ts'
import { addressesOf, type Settings } from '../config.ts'
import { defaultPort, protocolOf } from './locate.ts'

/** Returns the addresses that this platform listens on. No customer's request may be sent there. */
export function ownListeners(config: Settings): OwnListeners {
  const hosts = addressesOf(config).flatMap(({ host, bind }) =>
    isWildcard(bind) ? [host, ...everyHost()] : [host, bind],
  )
  return {
    hosts: compileSources(hosts.map(cidr => ({ cidr, selector_precedence: 0, owner: cidr }))),
    ports: new Set([config.sip_port, config.sips_port, config.ws_port, config.http_port]),
    rtp_ports: config.rtp_ports,
    control: config.drachtio,
  }
}

/** Returns the SIP addresses that this platform gives to peers. */
export const servedAt = (config: Settings): ServedAt => ({
  hosts: addressesOf(config).map(({ host }) => host),
  sip_port: config.sip_port,
  sips_port: config.sips_port,
  ws_port: config.ws_port,
})

const isWildcard = (bind: string): boolean => bind === '0.0.0.0' || bind === '::'

const everyHost = (): string[] => [
  '127.0.0.0/8',
  '::1',
  ...Object.values(networkInterfaces()).flatMap(addresses => addresses?.map(({ address }) => address) ?? []),
]

/** Returns the address in a SIP URI; nothing for a host name, because no lookup is made. */
export function literalOf(text: string): HostPort[] {
  const uri = parseUri(text)
  if (!uri || !parseAddress(uri.host)) return []
  const named = protocolOf(uri)
  const protocol = named === undefined || named === 'unknown' ? (uri.scheme === 'sips' ? 'tls' : 'udp') : named
  return [{ host: uri.host, port: uri.port ?? defaultPort(protocol) }]
}

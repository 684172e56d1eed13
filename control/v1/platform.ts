import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { destinationCountries } from '../../core/domain/numbers/countries.ts'
import { configurationRevision } from '../../core/state/configuration/snapshot.ts'
import {
  Count64,
  Flag,
  Instant,
  Int32,
  list,
  listOf,
  oneOf,
  resource,
  type Static,
  Transport,
  Type,
} from '../http/schema.ts'
import type { ControlSettings } from '../http/services.ts'
import { route } from './route.ts'

const PlatformEndpoints = resource('PlatformEndpoints', {
  as_of: Instant,
  media_anchors: list(Type.String()),
  media_cidrs: list(Type.String()),
  rtp_port_range: Type.String(),
  rtp_ports: resource('RtpPorts', { start: Int32, end: Int32 }),
  signaling_fqdn: Type.String(),
  signaling_nodes: list(Type.String()),
  signaling_port: Int32,
  transports: list(resource('PlatformTransport', { port: Int32, transport: Transport })),
  tls: resource('PlatformTls', { realm: Type.String(), trust_chain: list(Type.String()) }),
  version: Count64,
})

const Country = resource('DestinationCountry', {
  calling_code: Type.String(),
  continent: oneOf('africa', 'americas', 'asia', 'europe', 'oceania'),
  iso_code: Type.String(),
  name: Type.String(),
  shared_code: Flag,
})

/** Returns the PEM certificates that peers must trust to call us over TLS: the configured ones or the generated one. */
function trustChain({ data_dir, tls_cert_file }: ControlSettings): string[] {
  const file = tls_cert_file ?? join(data_dir, 'tls', 'cert.pem')
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
}

export const platform = [
  route({
    method: 'get',
    path: '/platform/endpoints',
    summary: 'Read the addresses and ports that peers reach the platform by',
    scope: 'service_configuration:read',
    restricted_keys: true,
    replies: { 200: PlatformEndpoints },
    async run({ db, now, services }) {
      const { settings } = services
      const { host, second, rtp_ports, domain, sip_port, sips_port } = settings
      const hosts = second ? [host, second.host] : [host]
      const body: Static<typeof PlatformEndpoints> = {
        as_of: now,
        media_anchors: hosts,
        media_cidrs: hosts.map(one => `${one}/${one.includes(':') ? 128 : 32}`),
        rtp_port_range: `${rtp_ports.first}-${rtp_ports.last}`,
        rtp_ports: { start: rtp_ports.first, end: rtp_ports.last },
        signaling_fqdn: `sip.${domain}`,
        signaling_nodes: hosts,
        signaling_port: sip_port,
        transports: [
          { port: sip_port, transport: 'udp' },
          { port: sip_port, transport: 'tcp' },
          { port: sips_port, transport: 'tls' },
        ],
        tls: { realm: domain, trust_chain: trustChain(settings) },
        version: await configurationRevision(db),
      }
      return { status: 200, body }
    },
  }),

  route({
    method: 'get',
    path: '/destination-countries',
    summary: 'List the countries that destination rules can name',
    scope: 'service_configuration:read',
    restricted_keys: true,
    replies: { 200: listOf(Country) },
    async run() {
      return { status: 200, body: { data: [...destinationCountries()] } }
    },
  }),
]

import { ALL_ROLES, rolesInRow } from '../../core/domain/machines/roles.ts'
import { destinationCountries } from '../../core/domain/numbers/countries.ts'
import { certificatesIn, chainOnDisk } from '../../core/runtime/certificate.ts'
import { machineOf } from '../../core/runtime/machine.ts'
import { configurationRevision } from '../../core/state/configuration/snapshot.ts'
import type { Db } from '../../core/state/index.ts'
import { listMachines } from '../../core/state/nodes/machines.ts'
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

/** What peers must know of the machines: where SIP and media come from, and what to trust. */
interface Announced {
  readonly signaling: readonly string[]
  readonly media: readonly string[]
  readonly certificates: readonly string[]
}

/** Gathers it of all machines that share the state, this one first. */
async function announced(db: Db, settings: ControlSettings): Promise<Announced> {
  const { host, second, roles = ALL_ROLES, data_dir } = settings
  const own = { roles, hosts: second ? [host, second.host] : [host], certificates: chainOnDisk(settings) }
  const { machine_id } = machineOf(data_dir)
  const others = (await listMachines(db))
    .filter(({ id }) => id !== machine_id)
    .map(row => ({
      roles: rolesInRow(row),
      hosts: row.hosts === '' ? [row.host] : row.hosts.split(' '),
      certificates: certificatesIn(row.certificate),
    }))
  const all = [own, ...others]
  const edges = all.filter(one => one.roles.has('edge'))
  return {
    signaling: distinct(edges.flatMap(({ hosts }) => hosts)),
    media: distinct(all.filter(one => one.roles.has('media')).flatMap(({ hosts }) => hosts)),
    certificates: distinct(edges.flatMap(({ certificates }) => certificates)),
  }
}

const distinct = (texts: readonly string[]): string[] => [...new Set(texts)]

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
      const { rtp_ports, domain, sip_port, sips_port } = settings
      const { signaling, media, certificates } = await announced(db, settings)
      const body: Static<typeof PlatformEndpoints> = {
        as_of: now,
        media_anchors: [...media],
        media_cidrs: media.map(one => `${one}/${one.includes(':') ? 128 : 32}`),
        rtp_port_range: `${rtp_ports.first}-${rtp_ports.last}`,
        rtp_ports: { start: rtp_ports.first, end: rtp_ports.last },
        signaling_fqdn: `sip.${domain}`,
        signaling_nodes: [...signaling],
        signaling_port: sip_port,
        transports: [
          { port: sip_port, transport: 'udp' },
          { port: sip_port, transport: 'tcp' },
          { port: sips_port, transport: 'tls' },
        ],
        tls: { realm: domain, trust_chain: [...certificates] },
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

import pino from 'pino'
import { systemClock } from '../../../../core/runtime/clock.ts'
import type { InboundRequest } from '../../../../signaling/drachtio/types.ts'
import type { DigestAuthenticator } from '../../../../signaling/trunks/digest.ts'
import { Registrar } from '../../../../signaling/trunks/registrar.ts'
import { EMPTY_SNAPSHOT, type TrunkConfig } from '../../../../signaling/trunks/snapshot.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import t from '../../../support/harness/index.ts'

t.test('a Contact with maddr or an invalid URI is refused with 400', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const trunk = { id: 'trk_1', enabled: true, source_validation: 'relaxed' } as TrunkConfig
  const registrar = new Registrar({
    // Authentication has its own tests.
    digest: {
      check: () => ({ kind: 'authenticated', credential_id: 'cred_1', trunk_id: 'trk_1' }),
    } as unknown as DigestAuthenticator,
    state: w.state,
    clock: systemClock,
    log: pino({ level: 'silent' }),
    snapshot: () => ({ ...EMPTY_SNAPSHOT, trunks: new Map([['trk_1', trunk]]) }),
    domain: 'localhost',
    authToken: () => null,
  })
  const register = async (contact: string, transport: 'udp' | 'tcp' = 'udp'): Promise<number> => {
    let code = 0
    await registrar.handle({
      ...{ method: 'REGISTER', uri: 'sip:localhost', call_id: '1', headers: {}, body: '' },
      source: { address: '192.0.2.7', port: 49_152, transport },
      header: (name: string) => (name === 'contact' ? contact : null),
      respond: (status: number) => {
        code = status
      },
    } as InboundRequest)
    return code
  }
  for (const contact of [
    '<sip:u@192.0.2.7;maddr=9.9.9.9>',
    '<sip:u@192.0.2.7;MADDR=9.9.9.9;transport=tcp>',
    '<sip:u@192.0.2.7>, <sip:u@192.0.2.7;maddr=9.9.9.9>',
    '<sip:u@192.0.2.7;maddr>',
    '<sip:u@[nonsense]>',
  ])
    t.equal(await register(contact), 400, contact)
  t.same(registrar.contacts('trk_1'), [], 'a refused request adds no contact')

  t.equal(await register('<sip:u@192.0.2.7:5080>'), 200)
  t.equal(await register('<sip:u@10.0.0.1>'), 200)
  t.equal(await register('<sip:v@192.0.2.7>', 'tcp'), 200)
  t.match(
    registrar.contacts('trk_1').map(({ uri, proxy, proven_host }) => [uri, proxy, proven_host]),
    [
      ['sip:u@192.0.2.7:5080', null, '192.0.2.7'],
      ['sip:u@10.0.0.1', 'sip:192.0.2.7:49152', '192.0.2.7'],
      ['sip:v@192.0.2.7', 'sip:192.0.2.7:49152;transport=tcp', '192.0.2.7'],
    ],
    'a connection, or an address behind a NAT, is reached by the way that the REGISTER came',
  )
})

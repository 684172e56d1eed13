import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { examineDrachtio, examineExports } from '../../../bin/doctor-drachtio.ts'
import { loadConfig } from '../../../core/runtime/config.ts'
import { DrachtioPeer } from '../../support/drachtio-peer.ts'
import t from '../../support/harness/index.ts'

// The check of a drachtio-server by `strowger doctor`.

t.test('reports each fault of a drachtio-server with its fix', async t => {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-doctor-'))
  t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
  const peer = await DrachtioPeer.open()
  const { port } = peer
  const config = (env: Record<string, string> = {}) =>
    loadConfig({
      STROWGER_DATA: data_dir,
      STROWGER_HOST: '192.0.2.1',
      STROWGER_BIND: '127.0.0.1',
      STROWGER_DRACHTIO: `127.0.0.1:${port}`,
      STROWGER_DRACHTIO_SECRET: 'secret',
      ...env,
    })
  t.match(await examineDrachtio(config()), { ok: false, mend: /--contact for tls\/192\.0\.2\.1:5061, ws/ })
  peer.contacts = 'udp/192.0.2.1:5060,tcp/192.0.2.1:5060,tls/192.0.2.1:5061,wss/192.0.2.1:5066'
  t.match(await examineDrachtio(config()), { ok: true, what: /v0\.9\.10/ })
  t.match(await examineDrachtio(config({ STROWGER_SIP_PORT: '5070' })), { ok: false, mend: /udp\/192\.0\.2\.1:5070/ })
  const wrong = await examineDrachtio(config({ STROWGER_DRACHTIO_SECRET: 'another' }))
  t.match(wrong, { ok: false, mend: /incorrect secret.*STROWGER_DRACHTIO_SECRET/ })
  t.notMatch(JSON.stringify(wrong), 'another', 'the finding does not contain the secret')
  peer.frozen = true
  t.match(await examineDrachtio(config(), 100), { ok: false, mend: /does not answer/ })
  peer.close()
  t.same(examineExports(config()), [])
  t.match(examineExports(config({ STROWGER_HEP: '192.0.2.9:9060' })), [{ ok: false, mend: /--homer/ }])
  t.match(await examineDrachtio(config()), { ok: false, mend: /ECONNREFUSED.*STROWGER_DRACHTIO/ })
  t.equal(
    await examineDrachtio(loadConfig({ STROWGER_DATA: data_dir })),
    null,
    'there is nothing to check for the embedded edge',
  )
})

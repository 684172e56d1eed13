import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { internalPorts } from '../../../bin/ports.ts'
import t from '../../support/harness/index.ts'

const CONFIG = {
  ...{ bind: '127.0.0.1', http_port: 8080, https_port: null, sip_port: 5060, sips_port: 5061, ws_port: 5066 },
  rtp_ports: { first: 20_000, last: 29_999 },
}

t.test('internal ports are free, not configured, and outside the ephemeral range', async t => {
  const { control_link, sandbox } = await internalPorts(CONFIG)
  for (const port of [control_link, sandbox]) t.ok(port >= 61_000 && port <= 65_535, String(port))

  const other = createSocket('udp4')
  t.teardown(() => other.close())
  other.bind(sandbox, '127.0.0.1')
  await once(other, 'listening')
  t.not((await internalPorts(CONFIG)).sandbox, sandbox, 'a port in use is not chosen')
  t.not(
    (await internalPorts({ ...CONFIG, http_port: control_link })).control_link,
    control_link,
    'a configured port is not chosen',
  )

  const everything = { ...CONFIG, rtp_ports: { first: 60_000, last: 65_535 } }
  await t.rejects(internalPorts(everything), { name: 'StartRefused', message: /61000 to 65535/ })
})

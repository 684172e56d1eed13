import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { MAIN } from '../../bench/up.ts'
import { insertNotification } from '../../core/state/alerts/alerts.ts'
import { insertTestAlert } from '../support/alerts.ts'
import t from '../support/harness/index.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// Tools of operators: metrics, `strowger top`, the documents and rules that refer to them, and short messages sent over
// SIP.

const ROOT = new URL('../../../', import.meta.url)
const text = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')

const PROCESSES = ['edge', 'media', 'signaling', 'control', 'sandbox']

/** Returns our metric families in a Prometheus text: name to type. */
const familiesOf = (exposition: string): Map<string, string> =>
  new Map(
    [...exposition.matchAll(/^# TYPE (strowger_\w+) (\w+)$/gm)].map(
      ([, name = '', type = '']) => [name, type] as const,
    ),
  )

/** Reads the table of docs/metrics.md: name to type. */
const documented = (): Map<string, string> =>
  new Map(
    [...text('docs/metrics.md').matchAll(/^\| `(strowger_\w+)` \| (\w+) \|/gm)].map(([, a = '', b = '']) => [a, b]),
  )

t.test('operations', async t => {
  const gateway = createSocket('udp4')
  const messages: string[] = []
  gateway.on('message', (bytes, { port, address }) => {
    const message = bytes.toString()
    if (!message.startsWith('MESSAGE ')) return
    messages.push(message)
    const kept = message.split('\r\n').filter(line => /^(via|from|to|call-id|cseq):/i.test(line))
    const status = messages.length === 1 ? '503 Busy' : '202 Accepted'
    gateway.send(`SIP/2.0 ${status}\r\n${kept.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`, port, address)
  })
  await new Promise<void>(resolve => gateway.bind(0, '127.0.0.1', resolve))
  t.teardown(() => gateway.close())
  const w = await world(t, { STROWGER_SMS_URL: `sip:127.0.0.1:${gateway.address().port}` })
  const scrape = async (): Promise<string> => (await fetch(`${w.base_url}/metrics`)).text()
  // The sandbox carrier sleeps until a datagram comes.
  const carrier = await w.state.db.selectFrom('carrier_target').select('sip_uri').executeTakeFirstOrThrow()
  gateway.send('\r\n\r\n', Number(/:(\d+)$/.exec(carrier.sip_uri)?.[1]), '127.0.0.1')
  /** Waits for the metrics of all processes. One that does not answer within a second is missing. */
  const whole = (): Promise<string> =>
    until('all processes are in the metrics', async () => {
      const told = await scrape()
      const all = PROCESSES.every(name => told.includes(`process_cpu_seconds_total{process="${name}"}`))
      // A process that starts has not all of its metrics.
      return all && told.includes('strowger_sandbox_calls{') && told
    })

  t.test('every metric is documented, and every documented metric exists', async t => {
    const told = await whole()
    t.same([...familiesOf(told)].sort(), [...documented()].sort())
    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_seconds'])
      t.match(told, new RegExp(`^${name}\\{.*process="media"`, 'm'), `${name} of each process`)
  })

  t.test('names and types are those that `promtool check metrics` asks for', async t => {
    const told = await whole()
    const types = new Map(
      [...told.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type] as const),
    )
    const wrong = [...types].filter(
      ([name, type]) =>
        (type === 'counter') !== name.endsWith('_total') ||
        /_(count|sum|bucket|counter|gauge|histogram|summary)$|[A-Z:]|_(ms|us|ns|sec|kb|mb|gb)(_|$)/.test(name) ||
        !new RegExp(`^# HELP ${name} \\S`, 'm').test(told),
    )
    t.same(wrong, [])
    const misused = [...told.matchAll(/^(\w+)\{.*\b(quantile|le)="/gm)].filter(([, name = '', label]) => {
      const type = types.get(name.replace(/_bucket$/, '')) ?? ''
      return type !== 'summary' && !(type === 'histogram' && label === 'le')
    })
    t.same(misused, [])
  })

  t.test('dashboards and alert rules name nothing that does not exist', async t => {
    const known = familiesOf(await whole())
    const exists = (name: string): boolean =>
      known.has(name) || known.has(name.replace(/_(bucket|sum|count)$/, '')) || /^(process|nodejs)_/.test(name)
    const rules = text('docker/prometheus/alerts.yml')
    const shown = (name: string): string => {
      const dashboard = JSON.parse(text(`docker/grafana/dashboards/${name}.json`))
      return JSON.stringify(dashboard.panels.map((panel: { targets?: object }) => panel.targets))
    }
    for (const [where, source] of [
      ['alert rules', rules],
      ['dashboard', shown('strowger')],
      ['dashboard of trunks', shown('traffic')],
    ] as const) {
      const names = [...source.matchAll(/\b((?:strowger|process|nodejs)_[a-z_]+)\b/g)].map(([name]) => name)
      t.ok(names.length > 5, `the ${where} look at metrics`)
      t.same(
        names.filter(name => !exists(name)),
        [],
        `in the ${where}`,
      )
    }
  })

  t.test('counts requests and backlogs', async t => {
    t.equal((await w.manage('GET', '/trunks')).status, 200)
    t.equal((await w.manage('GET', '/nothing')).status, 404)
    // An alert of this kind lasts until it is acknowledged.
    await insertTestAlert({ state: w.state, demo: w }, 'new_source_ip')
    const told = await until('the alert is counted', async () => {
      const now = await scrape()
      return /^strowger_alerts_open\{.*\} 1$/m.test(now) && now
    })
    t.match(told, /^strowger_http_requests_total\{.*api="v1",method="GET",status="404".*\} 1$/m)
    t.match(told, /^strowger_http_request_duration_seconds_count\{.*api="v1".*\} \d+$/m)
    t.match(told, /^strowger_containments_open\{.*\} 0$/m)
    t.match(told, /^strowger_state_bytes\{.*\} [1-9]\d+$/m)
    for (const secret of [w.api_key, w.auth_token]) t.notOk(told.includes(secret), 'and no secret is among it')
  })

  /** Sums the resources of calls over all processes. Transactions remain for their timers, 32 s (RFC 3261 §17). */
  const living = async (): Promise<Record<string, number>> => {
    const now = await whole()
    const sum = (name: string): number =>
      [...now.matchAll(new RegExp(`^strowger_${name}(?:\\{.*\\})? (\\d+)$`, 'gm'))].reduce(
        (all, [, n]) => all + Number(n),
        0,
      )
    const names = ['live_calls', 'dialogs', 'edge_dialogs', 'media_sessions', 'media_legs', 'media_ports_in_use']
    return Object.fromEntries([...names, 'media_listeners', 'calls_waiting'].map(name => [name, sum(name)]))
  }

  t.test('`strowger top` shows running calls, as text and as JSON, and their resources until they end', async t => {
    const idle = await living()
    const env = { PATH: process.env['PATH'] ?? '', ...w.place, STROWGER_SIP_PORT: String(w.sip.port) }
    const top = async (...words: string[]): Promise<string> =>
      (await promisify(execFile)(process.execPath, [MAIN, 'top', ...words], { env })).stdout
    const made = await w.voice('POST', '/Calls.json', {
      ...{ To: '+2348030000008', From: w.numbers[0] ?? '', Twiml: '<Response><Pause length="600"/></Response>' },
    })
    t.equal(made.status, 201)
    const answered = async () => {
      const { body } = await w.voice('GET', `/Calls/${made.body.sid}.json`)
      return body.status === 'in-progress'
    }
    await until('the call is answered', answered)
    const busy = await living()
    for (const name of ['live_calls', 'dialogs', 'edge_dialogs', 'media_sessions', 'media_legs', 'media_ports_in_use'])
      t.ok((busy[name] ?? 0) > (idle[name] ?? 0), `${name}: ${idle[name]}, then ${busy[name]}`)
    const shown = JSON.parse(await top('--once', '--json'))
    // The call may be older than a minute by now.
    t.match(shown, { live_calls: 1, calls_last_minute: Number, alerts_open: 1, containments_open: 0 })
    t.match(shown.calls, [{ id: made.body.sid, to: '+2348030000008', status: 'in-progress' }])
    t.match(shown.projects, [{ id: w.project_id, live_calls: 1, currency: 'NGN', spend_today_minor: 0 }])
    t.same(
      shown.nodes.map((node: { kind: string; state: string }) => `${node.kind} ${node.state}`),
      ['edge up', 'media up', 'signaling up'],
    )
    await w.voice('POST', `/Calls/${made.body.sid}.json`, { Status: 'completed' })
    await w.ended(made.body.sid)
    let last: Record<string, number> = {}
    await until('all of it is gone', async () => {
      last = await living()
      return JSON.stringify(last) === JSON.stringify(idle)
    }).catch(() => t.same(last, idle, 'all of it is gone'))
    const of_project = new RegExp(
      `^strowger_project_calls_total\\{project="${w.project_id}",status="completed".*\\} 1$`,
      'm',
    )
    t.match(await whole(), of_project)
    const after = await top('--once')
    t.match(after, /^live 0 {3}cps \d+ {3}last minute \d {3}asr 1h 100\.0 % {3}acd 1h \d+ s$/m)
    t.match(after, /^spent today: .* NGN 0\.00$/m)
    t.notMatch(after, made.body.sid)
    await t.rejects(top('--every', '0'), /expected 0\.2 to 3600 seconds/)
  })

  t.test('a short message is sent as SIP MESSAGE, and retried when the gateway is busy', async t => {
    const alert = await w.state.db.selectFrom('alert').selectAll().executeTakeFirstOrThrow()
    const now = new Date().toISOString()
    await w.state.transaction(trx =>
      insertNotification(
        trx,
        {
          ...{ project_id: w.project_id, alert_id: alert.id, event: 'alert.fired', channel: 'sms' },
          ...{ recipient: '+2348030000009', subject: 'x', body: 'Strowger warning: ₦5 left.', next_attempt_at: now },
        },
        now,
      ),
    )
    const row = () => w.state.db.selectFrom('alert_notification').selectAll().executeTakeFirstOrThrow()
    const busy = await until('the gateway was asked', async () => {
      const one = await row()
      return one.attempts === 1 && one
    })
    t.match(busy, { state: 'pending', last_error: 'the gateway answered 503 Busy' })
    await w.state.db.updateTable('alert_notification').set({ next_attempt_at: now }).execute()
    await until('it is delivered', async () => (await row()).state === 'delivered')
    const [, message = ''] = messages
    t.match(message, /^MESSAGE sip:\+2348030000009@127\.0\.0\.1:\d+ SIP\/2\.0\r\n/)
    t.match(message, /^From: <sip:strowger@[^>]+>;tag=/im)
    t.match(message, /^Content-Type: text\/plain;charset=UTF-8\r$/im)
    t.ok(message.endsWith('\r\n\r\nStrowger warning: ₦5 left.'))
  })
})

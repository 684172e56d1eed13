import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { alertEvaluation, fraudWatch } from '../../control/alerts/evaluate.ts'
import { type Clock, iso, systemClock } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { insertCall, NOTHING_YET, writeCall } from '../../core/state/calls/running-calls.ts'
import { type ControlPlane, controlPlane } from './control-plane.ts'

/** A control plane whose clock the test sets and whose alert tasks the test runs. */
export interface AlertWorld extends ControlPlane {
  /** Advances the wall clock and records a heartbeat of the node. */
  pass(ms: number): Promise<void>
  /** Runs both tasks once, as their timers would. */
  look(): Promise<void>
  /** Runs the fraud watch once, with this state. */
  lookForFraud(state: ControlPlane['state']): Promise<void>
  /** Returns alerts of a kind, newest first, as the API shows them. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape.
  alerts(kind: string): Promise<any[]>
}

interface Teardown {
  teardown(end: () => unknown): void
}

const NODE = 'node_alert'

/** Opens the world at noon UTC of a day in the middle of a month. */
export async function alertWorld(t: Teardown, begin = '2026-03-11T12:00:00.000Z'): Promise<AlertWorld> {
  let at_ms = Date.parse(begin)
  const clock: Clock = { ...systemClock, now: () => at_ms }
  const w = await controlPlane(t, { clock })
  const watch = fraudWatch()
  const beat = (): Promise<unknown> =>
    w.state.db
      .updateTable('node')
      .set({ heartbeat_at: iso(at_ms) })
      .where('id', '=', NODE)
      .execute()
  await w.state.db
    .insertInto('node')
    .values({ id: NODE, kind: 'signaling', pid: 1, started_at: begin, heartbeat_at: begin })
    .execute()
  return {
    ...w,
    async pass(ms) {
      at_ms += ms
      await beat()
    },
    async look() {
      await alertEvaluation.run(w)
      await watch.run(w)
    },
    lookForFraud: state => watch.run({ ...w, state }),
    async alerts(kind) {
      const { body } = await w.ask('GET', '/v1/alerts?range=90d')
      return body.alerts.filter((alert: { kind: string }) => alert.kind === kind)
    },
  }
}

/** Inserts a trunk's call to a priced destination, as signaling and admission write it. Returns the call's sid. */
export async function pricedCall(
  w: AlertWorld,
  call: {
    readonly trunk_id: string
    readonly to: string
    readonly rate_prefix: string
    /** The price per minute and the amount charged, in minor units. */
    readonly minute_minor: number
    readonly charge_minor: number
    readonly seconds?: number
    readonly source_ip?: string
    readonly live?: boolean
  },
): Promise<string> {
  const { trunk_id, to, seconds = 60, live = false } = call
  const now_ms = w.clock.now()
  const sid = newId.call()
  const project = await w.state.db
    .selectFrom('project')
    .select('billing_account_id')
    .where('id', '=', w.demo.project_id)
    .executeTakeFirstOrThrow()
  await w.state.transaction(async trx => {
    await insertCall(
      trx,
      {
        ...{ sid, project_id: w.demo.project_id, account_sid: null, parent_call_sid: null },
        ...{ origin: 'trunk', direction: 'outbound', from_number: '+2342010000001', to_number: to, status: 'queued' },
        ...{ trunk_id, carrier_id: null, number_id: null, application_id: null, sip_call_id: null },
        ...{ source_ip: call.source_ip ?? '192.0.2.1', node_id: NODE, queued_at: iso(now_ms), ...NOTHING_YET },
      },
      now_ms,
    )
    await writeCall(trx, sid, [{ step: 'answered', at_ms: now_ms }])
    await trx
      .insertInto('reservation')
      .values({
        ...{ call_sid: sid, project_id: w.demo.project_id, billing_account_id: project.billing_account_id },
        ...{ billing: 'rated', destination: to, price_book_id: null, price_book_revision: null, rate_id: null },
        ...{ rate_prefix: call.rate_prefix, rate_label: 'Somewhere', rate_micro: call.minute_minor * 1_000_000 },
        ...{ rate_unit: 'minute', increment_initial_seconds: 60, increment_additional_seconds: 60, currency: 'NGN' },
        ...{ day: iso(now_ms).slice(0, 10), held_minute: 0, caps: '[]', paid_until_seconds: 60, begun_at: iso(now_ms) },
        held_minor: live ? call.charge_minor : 0,
        settled_at: live ? null : iso(now_ms),
        duration_seconds: live ? null : seconds,
        billed_seconds: live ? null : seconds,
        charge_minor: live ? null : call.charge_minor,
      })
      .execute()
  })
  return sid
}

/** Sets the project's prepaid balance and runs the alert tasks. */
export async function setBalance(w: AlertWorld, balance_minor: number, held_minor = 0): Promise<void> {
  const { billing_account_id: id } = await w.state.db
    .selectFrom('project')
    .select('billing_account_id')
    .executeTakeFirstOrThrow()
  const row = { id, name: 'Prepaid', currency: 'NGN', prepaid: 1 as const, credit_minor: 0, balance_minor, held_minor }
  await w.state.db
    .insertInto('billing_account')
    .values(row)
    .onConflict(conflict => conflict.column('id').doUpdateSet(row))
    .execute()
  await w.look()
}

/** Writes what a signaling node reports about a target or about a revision that it applied. */
export const report = {
  async target(w: AlertWorld, target_id: string, state: 'healthy' | 'degraded', misses: number): Promise<void> {
    const row = {
      ...{ target_id, node_id: NODE, state, misses, last_code: state === 'healthy' ? 200 : 408 },
      ...{ address: null, checked_at: iso(w.clock.now()) },
    }
    await w.state.db
      .insertInto('target_evidence')
      .values(row)
      .onConflict(conflict => conflict.columns(['target_id', 'node_id']).doUpdateSet(row))
      .execute()
  },
  async applied(w: AlertWorld, resource_id: string, revision: number, error: string | null): Promise<void> {
    const state = error === null ? ('applied' as const) : ('failed' as const)
    const row = { node_id: NODE, resource_id, revision, state, error, applied_at: iso(w.clock.now()) }
    await w.state.db
      .insertInto('apply_report')
      .values(row)
      .onConflict(conflict => conflict.columns(['node_id', 'resource_id']).doUpdateSet(row))
      .execute()
  },
}

interface Mail {
  readonly from: string
  readonly to: readonly string[]
  readonly text: string
}

/** Starts a mail server that keeps each message; `refuse` makes it answer 451. */
export async function mailServer(t: Teardown) {
  const mails: Mail[] = []
  let refusing = false
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', chunk => chunks.push(chunk))
      stream.on('end', () => {
        if (refusing) return done(Object.assign(new Error('Try again later'), { responseCode: 451 }))
        const { mailFrom, rcptTo } = session.envelope
        mails.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(one => one.address),
          text: Buffer.concat(chunks).toString('utf8'),
        })
        done()
      })
    },
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>(resolve => server.close(() => resolve())))
  return {
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    mails,
    refuse(yes: boolean) {
      refusing = yes
    },
  }
}

interface Heard {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Starts an HTTP server that answers every request with 204 and keeps it. */
export async function httpSink(t: Teardown): Promise<{ readonly url: string; readonly heard: Heard[] }> {
  const heard: Heard[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      heard.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
      response.writeHead(204).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, heard }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { dayOf } from '../core/domain/rating/index.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { figureSteps } from '../core/state/calls/call-steps.ts'
import { spentOn } from '../core/state/calls/counters.ts'
import { callsNow, listNodes, liveCalls, stateOfNode } from '../core/state/calls/project-steps.ts'
import type { State } from '../core/state/index.ts'
import { backlog } from '../core/state/maintenance/backlog.ts'
import { withState } from './state.ts'
import { type Column, shortId, table } from './table.ts'

const SHOWN_CALLS = 20

/** The current activity of all projects. Money is in minor units. */
interface Top {
  readonly at: string
  readonly live_calls: number
  /** Calls that began in the last second, and in the last minute. */
  readonly cps: number
  readonly calls_last_minute: number
  /** Answer ratio of the calls that ended within the last hour; null without any. */
  readonly asr_1h_pct: string | null
  readonly acd_1h_seconds: number | null
  readonly projects: readonly {
    readonly id: string
    readonly name: string
    readonly live_calls: number
    readonly spend_today_minor: number
    readonly currency: string
  }[]
  readonly alerts_open: number
  readonly containments_open: number
  readonly nodes: readonly {
    readonly id: string
    readonly kind: string
    readonly state: ReturnType<typeof stateOfNode>
  }[]
  /** Newest first. */
  readonly calls: readonly {
    readonly id: string
    readonly direction: string
    readonly from: string
    readonly to: string
    readonly status: string
    readonly trunk: string | null
    readonly seconds: number
  }[]
}

/** Shows live calls, calls per second, answer ratio and spend in the terminal. */
export function topCommand(): Command {
  return new Command('top')
    .option('--once', 'one look, then end')
    .option('--json', 'as JSON, a line for each look')
    .option('--every <seconds>', 'how often to look', '1')
    .action((options: { once?: true; json?: true; every: string }) =>
      withState(async state => {
        const every_ms = Number(options.every) * 1000
        if (!(every_ms >= 200 && every_ms <= 3_600_000))
          throw new StartRefused(`--every ${options.every}: expected 0.2 to 3600 seconds`)
        const screen = process.stdout.isTTY === true && !options.json && !options.once
        const over = new AbortController()
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
        // The reader has gone, as with `| head`.
        process.stdout.once('error', () => over.abort())
        for (;;) {
          const top = await lookAt(state, Date.now())
          const text = options.json ? JSON.stringify(top) : render(top, process.stdout.columns ?? 120).join('\n')
          if (screen) process.stdout.write(Buffer.from('\u001b[H\u001b[2J'))
          process.stdout.write(`${text}\n`)
          if (options.once) return
          await sleep(every_ms, undefined, { signal: over.signal }).catch(() => undefined)
          if (over.signal.aborted) return
        }
      }),
    )
}

async function lookAt({ db }: State, now_ms: number): Promise<Top> {
  const found = await db
    .selectFrom('project')
    .innerJoin('organization', 'organization.id', 'project.organization_id')
    .select(['project.id', 'project.name', 'project.currency', 'organization.time_zone'])
    .where('project.status', '=', 'active')
    .orderBy('project.name')
    .limit(1000)
    .execute()
  const projects = []
  const sums = { live: 0, second: 0, minute: 0, attempts: 0, answered: 0, busy_seconds: 0 }
  for (const { id, name, currency, time_zone } of found) {
    const { live, recent } = await callsNow(db, id, now_ms - 60_000)
    sums.live += live
    sums.minute += recent
    sums.second += (await callsNow(db, id, now_ms - 1000)).recent
    for (const { figures } of await figureSteps(db, { kind: 'project', id }, '1h', now_ms)) {
      sums.attempts += figures.attempts
      sums.answered += figures.answered
      sums.busy_seconds += figures.answered_seconds
    }
    const spend_today_minor = await spentOn(db, 'project', id, dayOf(now_ms, time_zone))
    projects.push({ id, name, live_calls: live, spend_today_minor, currency })
  }
  const waiting = await backlog(db, iso(now_ms))
  return {
    at: iso(now_ms),
    live_calls: sums.live,
    cps: sums.second,
    calls_last_minute: sums.minute,
    asr_1h_pct: sums.attempts === 0 ? null : ((100 * sums.answered) / sums.attempts).toFixed(1),
    acd_1h_seconds: sums.answered === 0 ? null : Math.round(sums.busy_seconds / sums.answered),
    projects,
    alerts_open: waiting.alerts_open,
    containments_open: waiting.containments_open,
    nodes: (await listNodes(db)).map(node => ({ id: node.id, kind: node.kind, state: stateOfNode(node, now_ms) })),
    calls: (await liveCalls(db, SHOWN_CALLS)).map(row => ({
      id: row.sid,
      direction: row.direction,
      from: row.from_number,
      to: row.to_number,
      status: row.status,
      trunk: row.trunk_name,
      seconds: Math.max(0, Math.floor((now_ms - Date.parse(row.answered_at ?? row.queued_at)) / 1000)),
    })),
  }
}

/** Returns the lines of the screen, none longer than `width`. */
export function render(top: Top, width: number): string[] {
  const money = top.projects.map(one => `${one.name} ${one.currency} ${(one.spend_today_minor / 100).toFixed(2)}`)
  const nodes = top.nodes.map(node => `${node.kind} ${node.state}`)
  return [
    `strowger top  ${top.at}`,
    `live ${top.live_calls}   cps ${top.cps}   last minute ${top.calls_last_minute}   ` +
      `asr 1h ${top.asr_1h_pct === null ? '-' : `${top.asr_1h_pct} %`}   ` +
      `acd 1h ${top.acd_1h_seconds === null ? '-' : `${top.acd_1h_seconds} s`}`,
    `alerts ${top.alerts_open}   closed prefixes ${top.containments_open}   nodes ${nodes.join(', ') || 'none'}`,
    `spent today: ${money.join(', ') || '-'}`,
    '',
    ...table(top.calls, COLUMNS, width),
  ].map(line => line.slice(0, width))
}

const clockOf = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`

/** What a narrow terminal loses last stands first. */
const COLUMNS: readonly Column<Top['calls'][number]>[] = [
  { title: 'CALL', text: call => shortId(call.id), least: 8 },
  { title: 'FROM', text: call => call.from, least: 10, rank: 1 },
  { title: 'TO', text: call => call.to, least: 10 },
  { title: 'STATUS', text: call => call.status },
  { title: 'TIME', text: call => clockOf(call.seconds), right: true },
  { title: 'TRUNK', text: call => call.trunk ?? '-', least: 8, rank: 1 },
  { title: 'DIRECTION', text: call => call.direction, rank: 3 },
]

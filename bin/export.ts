import { createWriteStream } from 'node:fs'
import { Writable } from 'node:stream'
import { Command, Option } from 'commander'
import { callExports } from '../control/reconcilers/call-exports.ts'
import { counted } from '../core/domain/text/counted.ts'
import { connectBus } from '../core/runtime/bus.ts'
import { createLog } from '../core/runtime/log.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { TaskLease } from '../core/state/nodes/task-lease.ts'
import { tasksOf } from '../core/state/nodes/task-lease-rows.ts'
import { type AnswerOf, ask, askInto } from './operator-route.ts'
import { withState } from './state.ts'
import { complain, terminal } from './terminal.ts'

interface ExportOptions {
  readonly format: 'csv' | 'jsonl'
  readonly out: string
  readonly project?: string
  readonly trunk?: string
  readonly status?: string
  readonly direction?: string
  readonly from?: string
  readonly to?: string
  readonly number?: string
  readonly since?: string
  readonly before?: string
}

type Job = AnswerOf<'get /exports/{export_id}'>

const LOOK_MS = 300

export function exportCommand(): Command {
  return new Command('export')
    .addOption(new Option('--format <format>').choices(['csv', 'jsonl']).default('csv'))
    .option('--out <file>', 'where to write; `-` is standard output', '-')
    .option('--project <id>', 'the calls of one project')
    .option('--trunk <id>', 'the calls of one trunk')
    .option('--status <status>', 'such as completed or failed')
    .option('--direction <direction>', 'such as inbound or outbound')
    .option('--from <number>', 'the calling number')
    .option('--to <number>', 'the called number')
    .option('--number <number>', 'the calling or the called number')
    .option('--since <time>', 'queued from (ISO 8601), included')
    .option('--before <time>', 'queued until, not included')
    .action(async (options: ExportOptions) => {
      const target = options.out === '-' ? standardOutput() : createWriteStream(options.out, { mode: 0o600 })
      await new Promise((resolve, reject) => {
        if (options.out === '-') return resolve(undefined)
        target.once('open', resolve).once('error', reject)
      })
      const { format, project: project_id, trunk: trunk_id, out: _out, ...rest } = options
      const filter = JSON.parse(JSON.stringify({ ...rest, project_id, trunk_id }))
      const job = await ask('post /exports', { body: { format, filter } })
      const params = { export_id: job.id }
      try {
        const { rows } = await finished(job)
        await askInto('get /exports/{export_id}/file', { params }, target).catch(unlessSeen)
        complain(`${counted(rows, 'call')}\n`)
      } finally {
        await ask('delete /exports/{export_id}', { params })
      }
    })
}

/** Standard output as the end of a pipeline, which must not close it. */
const standardOutput = (): Writable => new Writable({ write: (chunk, _encoding, done) => terminal().out(chunk, done) })

/** A reader that has seen enough, such as head(1), is no fault. */
function unlessSeen(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

/** Follows a job to its end. Where no platform runs that would carry it out, this process does. */
function finished(begun: Job): Promise<Job> {
  return withState(async (state, config) => {
    const log = createLog('cli', config)
    const { clock } = state
    const machine = machineOf(config.data_dir)
    const lease = new TaskLease({ name: tasksOf(machine), machine, state, clock, log })
    const bus = connectBus(config.run_dir)
    const writing = callExports()
    const services = { state, bus, clock, log, settings: config, objects: null }
    try {
      for (let reported = -1; ; ) {
        await lease.renew()
        if (lease.held) await writing.run(services)
        const job = await ask('get /exports/{export_id}', { params: { export_id: begun.id } })
        if (job.state === 'completed') return job
        if (job.state === 'failed') throw new StartRefused(job.error ?? 'the export failed')
        if (process.stderr.isTTY && job.progress_percent > reported)
          complain(`${job.progress_percent} %, ${counted(job.rows, 'call')}\n`)
        reported = job.progress_percent
        if (!lease.held) await new Promise(resolve => setTimeout(resolve, LOOK_MS))
      }
    } finally {
      await writing.stop?.()
      await lease.stop()
      await bus.close()
    }
  })
}

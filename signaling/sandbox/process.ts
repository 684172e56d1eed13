import { systemClock } from '../../core/runtime/clock.ts'
import { loadSettings } from '../../core/runtime/config.ts'
import { type ProcessContext, type RunningProcess, runProcess, type Word } from '../../core/runtime/lifecycle.ts'
import { Gauge } from '../../core/runtime/metrics.ts'
import { runProgramsBySupervisor } from '../../core/runtime/program-runner.ts'
import { doorOfSupervisor, sleepWithoutWork } from '../../core/runtime/woken.ts'
import { openCarrier } from './carrier.ts'

/**
 * The process of the sandbox carrier. The supervisor passes its own SIP port as STROWGER_SIP_PORT, starts it at the
 * first datagram there, and ends it when it has had no call for a while.
 */
async function start({ config, log, metrics }: ProcessContext): Promise<RunningProcess> {
  runProgramsBySupervisor()
  const socket = await doorOfSupervisor()
  const carrier = await openCarrier({ host: config.bind, port: config.sip_port, socket, log })
  sleepWithoutWork(systemClock, {
    works: () => carrier.calls > 0,
    sleep: () => process.send?.({ sleeps: true } satisfies Word),
  })
  new Gauge({
    name: 'strowger_sandbox_calls',
    help: 'Calls that the sandbox carrier has now',
    registers: [metrics],
    collect() {
      this.set(carrier.calls)
    },
  })
  return { stop: async () => carrier.close() }
}

void runProcess('sandbox', loadSettings, start)

import { Command } from 'commander'
import { sharedAddresses } from '../core/domain/machines/addresses.ts'
import { ROLES } from '../core/domain/machines/roles.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { joinMachines, makeToken, sentencesOn } from './join.ts'
import { print, printTable } from './operator-print.ts'
import { ask, type ItemOf } from './operator-route.ts'
import type { Column } from './table.ts'
import { fail, give, tell } from './terminal.ts'

interface Json {
  readonly json?: boolean
}

type Machine = ItemOf<'get /machines'>

const COLUMNS: readonly Column<Machine>[] = [
  { title: 'machine', text: ({ id, here }) => (here ? `${id} (here)` : id) },
  { title: 'state', text: ({ state }) => state, states: true },
  { title: 'roles', text: ({ roles }) => (roles.length === ROLES.length ? 'all' : roles.join(' ')), rank: 1 },
  { title: 'calls', text: ({ live_calls }) => String(live_calls), right: true },
  { title: 'address', text: ({ host }) => host },
  { title: 'version', text: ({ version }) => version, rank: 1 },
  { title: 'behind', text: ({ configuration_behind }) => String(configuration_behind), right: true, rank: 1 },
  { title: 'processes', text: ({ processes }) => processes.join(' ') || '-', rank: 2 },
  { title: 'last seen', text: ({ seen_at }) => seen_at, rank: 2 },
]

/** Sentences on what an operator should mend: machines whose settings or versions differ, or whose addresses do not. */
function complaints(machines: readonly Machine[]): string[] {
  const living = machines.filter(({ state }) => state !== 'down')
  const versions = [...new Set(living.map(({ version }) => version))]
  const addressed = living.map(({ id, host, roles }) => ({ id, hosts: [host], edge: roles.includes('edge') }))
  return [
    ...machines
      .filter(({ other_settings }) => other_settings.length > 0)
      .map(({ id, other_settings }) => `${id} has other values than this machine: ${other_settings.join(', ')}`),
    ...(versions.length > 1 ? [`the machines run several versions: ${versions.join(', ')}`] : []),
    ...sharedAddresses(addressed).map(shared => `${shared}: set STROWGER_HOST of each edge`),
  ]
}

/** Shows the machines that share a database, and takes one of them out of service. */
export function clusterCommand(): Command {
  const command = new Command('cluster')
  command
    .command('status')
    .description('machines with their state, calls and versions; exit code 1 when one is down or lacks a process')
    .option('--json', 'as JSON')
    .action(async ({ json }: Json) => {
      const { data: machines } = await ask('get /machines')
      if (json) give(`${JSON.stringify(machines)}\n`)
      else {
        printTable(machines, COLUMNS)
        for (const sentence of complaints(machines)) tell(`${sentence}\n`)
      }
      if (machines.some(({ state }) => state !== 'running' && state !== 'draining')) fail()
    })
  command
    .command('drain')
    .description('give a machine no new calls; when its last has ended, its platform stops')
    .argument('<machine_id>')
    .option('--cancel', 'give it calls again')
    .option('--json', 'as JSON')
    .action(async (machine_id: string, { cancel, json = false }: Json & { cancel?: true }) => {
      const { data } = await ask('get /nodes')
      const nodes = data.filter(node => node.machine_id.startsWith(machine_id) && node.kind === 'signaling')
      if (new Set(nodes.map(node => node.machine_id)).size > 1)
        throw new StartRefused(`several machines begin with ${machine_id}`)
      if (nodes.length === 0) throw new StartRefused(`no signaling node runs on a machine ${machine_id}`)
      // A process that gives no sign of life is replaced or cut off. Alone, it drains when it reads its row again.
      const living = nodes.filter(({ alive }) => alive)
      const answers = []
      for (const { id } of living.length > 0 ? living : nodes)
        answers.push(
          await ask(cancel ? 'post /nodes/{node_id}/take-calls' : 'post /nodes/{node_id}/drain', {
            params: { node_id: id },
          }),
        )
      print(answers, { json })
      if (living.length === 0 && !json)
        tell(`${machine_id} gives no sign of life: its signaling process hears of this when it is back\n`)
    })
  command
    .command('token')
    .description(
      'hand the master key and the shared settings to one machine that joins; waits for it, 15 minutes at most',
    )
    .option('--listen <HOST:PORT>', 'where that machine reaches this one; by default the host of STROWGER_LINK')
    .action(({ listen }: { readonly listen?: string }) => makeToken(listen))
  command
    .command('join')
    .description('take the master key and the shared settings from the machine that has made a token')
    .argument('<host:port>', 'as `strowger cluster token` prints it')
    .argument('<token>')
    .option('--settings <file>', 'where to write the settings; by default cluster.env in the data folder')
    .option('--json', 'as JSON')
    .action(async (at: string, token: string, { settings, json }: Json & { readonly settings?: string }) => {
      const joined = await joinMachines(at, token, settings)
      if (json) give(`${JSON.stringify(joined)}\n`)
      else for (const sentence of sentencesOn(joined)) tell(`${sentence}\n`)
    })
  return command
}

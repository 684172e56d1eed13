import { mkdirSync, writeFileSync } from 'node:fs'

// What is promised of several machines on one PostgreSQL, as figures. The tests have the short forms.
//
//   npm run bench -- cluster [--only state] [--calls 1000]  what a call costs
//   npm run bench -- cluster --only ceilings [--rounds 50]  three processes meet at two ceilings
//   npm run bench -- cluster --only invites [--rounds 50]   INVITEs at three machines meet at a trunk's ceilings
//   npm run bench -- cluster --only history [--steps 100000]    random histories on both stores
//   npm run bench -- cluster --only outage [--calls 100]    the database stops, returns, and is replaced by its standby
//   npm run bench -- cluster --only kills [--minutes 10] [--rate 20]    each process of two machines is killed
//   npm run bench -- cluster --only partitions [--seconds 60] [--rate 4]    machines lose the database, and each other
//   npm run bench -- cluster --only crashes [--seeds 20] [--operations 10000]    histories with kills and outages
//   npm run bench -- cluster --only move [--rows 1000000]    an installation on SQLite moves, row by row
//   npm run bench -- cluster --only upgrade [--calls 200]    machines are upgraded one by one under calls

const option = (name: string, otherwise: number): number => {
  const at = process.argv.indexOf(name)
  return at === -1 ? otherwise : Number(process.argv[at + 1])
}

const FIGURES: Readonly<Record<string, () => Promise<{ readonly within_limits: boolean } | boolean>>> = {
  state: async () => (await import('./state.ts')).state(option('--calls', 1000)),
  ceilings: async () => (await import('./ceilings.ts')).ceilings(option('--rounds', 50)),
  invites: async () => (await import('./invites.ts')).invites(option('--rounds', 50)),
  history: async () => (await import('./histories.ts')).histories(option('--steps', 100_000)),
  outage: async () => (await import('./outage.ts')).outage(option('--calls', 100)),
  kills: async () => (await import('./kills.ts')).kills(option('--minutes', 10), option('--rate', 20)),
  move: async () => (await import('./move.ts')).move(option('--rows', 1_000_000)),
  upgrade: async () => (await import('./upgrade.ts')).upgrade(option('--calls', 200)),
  partitions: async () => (await import('./partitions.ts')).partitions(option('--seconds', 60), option('--rate', 4)),
  crashes: async () => (await import('./crashes.ts')).crashes(option('--seeds', 20), option('--operations', 10_000)),
}

const only = process.argv.includes('--only') ? String(process.argv[process.argv.indexOf('--only') + 1]) : 'state'
const measure = FIGURES[only]
if (!measure) throw new Error(`--only ${only}: there are ${Object.keys(FIGURES).join(', ')}`)
const found = await measure()
const good = typeof found === 'boolean' ? found : found.within_limits
mkdirSync('bench/results', { recursive: true })
const results = { at: new Date().toISOString(), [only]: found }
writeFileSync('bench/results/cluster.json', `${JSON.stringify(results, null, 2)}\n`)
process.exit(good ? 0 : 1)

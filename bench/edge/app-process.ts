import { createRequire } from 'node:module'

// A minimal B2BUA on drachtio-srf without media and storage, as in the reference measurement of performance.md.

interface SrfDialog {
  readonly connected: boolean
  on(event: 'destroy', run: () => void): void
  destroy(): void
}
interface Srf {
  on(event: string, run: (...args: never[]) => void): void
  connect(options: { host: string; port: number; secret: string }): void
  invite(run: (request: { body: string }, response: unknown) => void): void
  createB2BUA(
    request: unknown,
    response: unknown,
    uri: string,
    options: { localSdpB: string },
  ): Promise<{ uas: SrfDialog; uac: SrfDialog }>
}

const SrfClass = createRequire(import.meta.url)('drachtio-srf') as new () => Srf
const [control_port = '0', target = ''] = process.argv.slice(2)
const srf = new SrfClass()
let failed = 0
srf.on('error', () => undefined)
srf.on('connect', () => process.send?.({ connected: true }))
srf.invite((request, response) => {
  srf.createB2BUA(request, response, target, { localSdpB: request.body }).then(
    ({ uas, uac }) => {
      endTogether(uas, uac)
      endTogether(uac, uas)
    },
    () => {
      failed++
    },
  )
})
srf.connect({ host: '127.0.0.1', port: Number(control_port), secret: 'bench' })

/** Ends one leg when the other ends. A BYE in the same read as the ACK has ended its leg before a listener exists. */
function endTogether(one: SrfDialog, other: SrfDialog): void {
  if (one.connected) one.on('destroy', () => other.destroy())
  else other.destroy()
}

process.on('message', (question: string) => {
  if (question === 'measure') {
    const { user, system } = process.cpuUsage()
    process.send?.({ cpu_us: user + system, failed })
  } else if (question === 'stop') process.exit(0)
})
process.on('disconnect', () => process.exit(0))

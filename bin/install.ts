import { Command } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { orSayWhy } from './say.ts'
import { install } from './service/install.ts'
import { PLACES, thisSystem, UNIT } from './service/places.ts'
import { leavingOf, uninstall } from './service/uninstall.ts'
import { give, tell } from './terminal.ts'

interface Json {
  readonly json?: true
}

/** Installs the release of this command as a service of systemd. */
export const installCommand = (): Command =>
  new Command('install')
    .option('--start', 'start the service now and at each boot')
    .option('--json', 'as JSON')
    .action(({ start = false, json }: Json & { readonly start?: boolean }) =>
      orSayWhy(async () => {
        const placed = await install(thisSystem(), { start })
        if (json) return give(`${JSON.stringify(placed)}\n`)
        for (const { what, made } of placed) tell(`${made ? 'made' : 'kept'}  ${what}\n`)
        if (start) tell(`${UNIT} runs, and starts at each boot: strowger status\n`)
        else tell(`edit ${PLACES.settings}, then: systemctl enable --now ${UNIT}\n`)
      }),
    )

/** Removes what `install` and `upgrade` put on the machine. */
export const uninstallCommand = (): Command =>
  new Command('uninstall')
    .option('--purge', 'remove settings, data, recordings and user too')
    .option('--yes', 'do it; else only say what would be removed')
    .option('--json', 'as JSON')
    .action(({ purge = false, yes, json }: Json & { readonly purge?: boolean; readonly yes?: true }) =>
      orSayWhy(async () => {
        const on = thisSystem()
        const leaving = leavingOf(on, { purge })
        if (yes) await uninstall(on, leaving)
        if (json) give(`${JSON.stringify({ ...leaving, done: yes === true })}\n`)
        else {
          for (const path of leaving.removed) tell(`${yes ? 'removed' : 'would remove'}  ${path}\n`)
          for (const path of leaving.kept) tell(`kept  ${path}\n`)
        }
        if (!yes) throw new StartRefused('nothing was removed: uninstall --yes does it')
      }),
    )

import type { Clock } from '../core/runtime/clock.ts'
import type { Log } from '../core/runtime/log.ts'
import { claimSipDialog, dialogsToCheck, removeSipDialog, saveSipDialog } from '../core/state/calls/sip-dialogs.ts'
import type { State } from '../core/state/index.ts'
import type { DialogKeeper, SipStack } from './drachtio/types.ts'
import { LinkLost } from './drachtio/types.ts'

/**
 * Hangs up dialogs that a lost node or a lost link left on a drachtio-server. Such a server keeps and refreshes them
 * without a BYE to either far end. Any connection may send a BYE by the dialog's id (docs/drachtio.md).
 */
export class LeftDialogs implements DialogKeeper {
  readonly #options: { readonly server: string; readonly state: State; readonly clock: Clock; readonly log: Log }
  #node_id: string | null = null
  /** The dialogs that this process runs. */
  readonly #live = new Set<string>()
  readonly #ending = new Set<string>()

  constructor(options: { server: string; state: State; clock: Clock; log: Log }) {
    this.#options = options
  }

  /** Sets the node that owns new dialogs. Must be called before the first call. */
  belongTo(node_id: string): void {
    this.#node_id = node_id
  }

  opened(dialog_id: string): void {
    const { server, state, clock } = this.#options
    if (this.#node_id === null || this.#live.has(dialog_id)) return
    this.#live.add(dialog_id)
    this.#write(saveSipDialog(state.db, { server, dialog_id, node_id: this.#node_id }, clock.now()))
  }

  closed(dialog_id: string): void {
    if (this.#live.delete(dialog_id)) this.#forget(dialog_id)
  }

  linkLost(): void {
    this.#live.clear()
  }

  /** Sends a BYE in each dialog that no node runs; does nothing without a link. Does not wait for the responses. */
  async sweep(sip: Pick<SipStack, 'connected' | 'endLeft'>): Promise<void> {
    const { server, state, log } = this.#options
    const node_id = this.#node_id
    if (node_id === null || !sip.connected) return
    for (const left of await dialogsToCheck(state.db, server, node_id)) {
      const { dialog_id } = left
      if (this.#live.has(dialog_id) || this.#ending.has(dialog_id)) continue
      if (left.node_id !== node_id && !(await claimSipDialog(state.db, server, left, node_id))) continue
      this.#ending.add(dialog_id)
      void sip
        .endLeft(dialog_id)
        .then(known => {
          if (known) log.warn({ dialog_id }, 'a dialog without a node was hung up')
          this.#forget(dialog_id)
        })
        .catch(error => {
          // When the link is lost the row stays, and the next sweep retries.
          if (!(error instanceof LinkLost)) this.#forget(dialog_id)
        })
        .finally(() => this.#ending.delete(dialog_id))
    }
  }

  #forget(dialog_id: string): void {
    this.#write(removeSipDialog(this.#options.state.db, this.#options.server, dialog_id))
  }

  /** Logs a failed write. A call continues without its row, which matters only if the node is lost as well. */
  #write(written: Promise<void>): void {
    written.catch(err => this.#options.log.warn({ err }, 'a SIP dialog was not kept'))
  }
}

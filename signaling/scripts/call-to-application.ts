import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { type CallRow, insertCall, NOTHING_YET } from '../../core/state/calls/running-calls.ts'
import type { DocumentTarget, Entry } from '../../markup/interpreter/types.ts'
import { Call, type Party } from '../b2bua/call.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { Limits } from '../b2bua/inbound-call.ts'
import type { Leg } from '../b2bua/leg.ts'
import type { MediaEvent, MediaSession } from '../b2bua/media.ts'
import type { CallScript } from '../b2bua/script-host.ts'
import type { ApplicationConfig, NumberConfig } from '../trunks/snapshot.ts'
import { ApplicationCall } from './application-call.ts'

/**
 * A call of the API to a number that its project routes to an application of its own. It stays on the platform: its
 * document and the application's run at the two ends of a wire. The application's side is a call of its own, so that
 * what each document does is decided by the policy of its own service.
 */
export class CallToApplication extends Call {
  readonly endHeaders: Readonly<Record<string, string>> = {}
  readonly #limits: Limits
  readonly #answered: (leg: Leg) => void
  #far: ApplicationCall | null = null
  #script: CallScript | null = null

  constructor(
    ctx: CallContext,
    options: {
      readonly row: CallRow
      readonly session: MediaSession
      readonly limits: Limits
      readonly answered: (leg: Leg) => void
    },
  ) {
    super(ctx, options.row, options.session)
    this.#limits = options.limits
    this.#answered = options.answered
  }

  get script(): CallScript | null {
    return this.#script
  }

  /** The application's side owns the legs. */
  override get parties(): Party[] {
    const leg = this.#far?.leg
    return leg && this.answered && !leg.ended ? [{ call: this, leg }] : []
  }

  /** Runs a document on this side. */
  run(script: CallScript): void {
    this.#script = script
    this.#far?.run(script)
  }

  /** Replaces this side's document; false when it is over. */
  redirect(entry: Entry, fallback?: DocumentTarget): boolean {
    return this.#script?.update(entry, fallback) ?? false
  }

  override watchMedia(watcher: (event: MediaEvent) => void): () => void {
    return this.#far?.watchMedia(watcher) ?? super.watchMedia(watcher)
  }

  /** Begins the application's side. It needs no admission of its own: this call's has both sides. */
  async begin({ number, application }: { readonly number: NumberConfig; readonly application: ApplicationConfig }) {
    const { ctx, session } = this
    const row = await insertCall(ctx.state.db, this.#rowOfFar(number, application), ctx.clock.now())
    session.hold()
    const far = new ApplicationCall(ctx, {
      row,
      session,
      application,
      parameters: {},
      watcher: {
        initiated: () => this.initiated({}),
        ringing: () => this.ringing(),
        answered: leg => {
          const { max_duration_seconds: seconds, max_duration_reason: reason } = this.#limits
          this.answeredNow({ seconds, reason })
          this.#answered(leg)
        },
        ended: () => void this.end({ cause: this.answered ? 'called_hung_up' : 'media_unavailable' }),
      },
    })
    this.#far = far
    if (this.ended) await far.end({ cause: 'caller_hung_up' })
    else await far.begin()
  }

  protected legs(): Leg[] {
    return []
  }

  protected stop(_reason: string | null, headers: Readonly<Record<string, string>>): void {
    this.#script?.legEnded(headers)
    void this.#far?.end({ cause: 'caller_hung_up', headers })
  }

  protected hungUp(): 'called_hung_up' {
    return 'called_hung_up'
  }

  protected mediaSummary(): null {
    return null
  }

  protected pddMs(): null {
    return null
  }

  #rowOfFar(number: NumberConfig, application: ApplicationConfig) {
    const { account_sid, from_number } = this.row_now
    return {
      sid: newId.call(),
      project_id: this.project_id,
      account_sid,
      parent_call_sid: this.sid,
      origin: 'rest' as const,
      direction: 'inbound' as const,
      from_number: this.request.caller_id ?? from_number,
      to_number: number.e164,
      status: 'ringing' as const,
      trunk_id: null,
      carrier_id: null,
      number_id: number.id,
      application_id: application.id,
      sip_call_id: null,
      request: JSON.stringify({
        status_callback: application.status_callback_url,
        status_callback_method: application.status_callback_method,
        status_callback_events: ['completed'],
      }),
      node_id: this.ctx.node_id,
      queued_at: iso(this.ctx.clock.now()),
      ...NOTHING_YET,
    }
  }
}

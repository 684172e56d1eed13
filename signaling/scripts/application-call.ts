import type { CallRow } from '../../core/state/calls/running-calls.ts'
import type { DocumentTarget, Entry, FormParameters } from '../../markup/interpreter/types.ts'
import { Call } from '../b2bua/call.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { Limits } from '../b2bua/inbound-call.ts'
import { Leg, type LegListener } from '../b2bua/leg.ts'
import type { LegPolicy, MediaSession } from '../b2bua/media.ts'
import type { OutboundWatcher } from '../b2bua/outbound-watcher.ts'
import { answeredHost, type CallScript, type ScriptEntry, type ScriptHost } from '../b2bua/script-host.ts'
import { legSummary } from '../b2bua/summary.ts'
import type { ApplicationConfig } from '../trunks/snapshot.ts'

const POLICY: LegPolicy = {
  codecs: ['PCMU'],
  security: 'rtp',
  source_validation: 'relaxed',
  sources: [],
  signalled_from: null,
  telephone_event: true,
}

/** Returns the document that an application answers with, and its fallback. */
export function applicationEntry(
  { voice_url, voice_method, fallback_url, fallback_method }: ApplicationConfig,
  parameters?: FormParameters,
): ScriptEntry {
  return {
    kind: 'call',
    entry: { kind: 'request', url: voice_url, method: voice_method, ...(parameters ? { parameters } : {}) },
    fallback: fallback_url ? { url: fallback_url, method: fallback_method } : null,
  }
}

/** One end of a wire within the media worker. It has no SIP dialog and counts as answered from the start. */
class WireLeg extends Leg {
  override get answered(): boolean {
    return true
  }

  protected override get side(): 'application' {
    return 'application'
  }
}

/**
 * A child call to a voice application: by a Dial within the project, or by a transfer to the application's number. The
 * application's document runs on the far end of a wire; the near end is joined with the caller (voice-compat.md §11).
 */
export class ApplicationCall extends Call {
  readonly endHeaders: Readonly<Record<string, string>> = {}
  readonly answer = null
  readonly detail = null
  readonly #application: ApplicationConfig
  readonly #parameters: FormParameters
  readonly #limits: Limits | null
  readonly #watcher: OutboundWatcher
  readonly #near: WireLeg
  readonly #far: WireLeg
  #whisper: CallScript | null = null
  #script: CallScript | null = null

  constructor(
    ctx: CallContext,
    options: {
      readonly row: CallRow
      readonly session: MediaSession
      readonly application: ApplicationConfig
      readonly parameters: FormParameters
      readonly watcher: OutboundWatcher
      /** Absent for a Dial, which is not admitted and stays within the limits of its parent. */
      readonly limits?: Limits
    },
  ) {
    super(ctx, options.row, options.session)
    this.#application = options.application
    this.#parameters = options.parameters
    this.#watcher = options.watcher
    this.#limits = options.limits ?? null
    const { session } = options
    this.#near = new WireLeg(ctx, { id: `${this.sid}-near`, session, listener: this.#nearListener(), log: this.log })
    this.#far = new WireLeg(ctx, { id: `${this.sid}-far`, session, listener: this.#farListener(), log: this.log })
    this.onEnd(final => options.watcher.ended?.(final))
  }

  get leg(): Leg {
    return this.#near
  }

  /** Runs a whisper, which the called side (the application) hears. */
  run(script: CallScript): void {
    this.#whisper = script
    script.start()
  }

  /** Replaces the application's document; false when its script is over. */
  redirect(entry: Entry, fallback?: DocumentTarget): boolean {
    return this.#script?.update(entry, fallback) ?? false
  }

  async begin(): Promise<void> {
    this.initiated({ application_id: this.#application.id })
    this.#watcher.initiated?.()
    try {
      await this.#near.openMedia(POLICY)
      await this.#far.openMedia(POLICY)
      await this.#far.takeOffer(await this.#near.makeOffer())
      await this.#near.takeAnswer(await this.#far.makeAnswer())
    } catch (error) {
      if (!this.ended) this.log.info({ err: error }, 'media could not be given to an application')
      await this.end({ cause: 'media_unavailable' })
      return
    }
    if (this.ended) return
    this.ringing()
    this.#watcher.ringing?.()
    const { max_duration_seconds: seconds = null, max_duration_reason: reason = null } = this.#limits ?? {}
    this.answeredNow({ seconds, reason })
    this.#runApplication()
    this.#watcher.answered(this.#near)
  }

  protected legs(): Leg[] {
    return [this.#near, this.#far]
  }

  protected stop(_reason: string | null, headers: Readonly<Record<string, string>>): void {
    this.#whisper?.legEnded(headers)
    this.#script?.legEnded(headers)
  }

  protected hungUp(): 'called_hung_up' {
    return 'called_hung_up'
  }

  protected mediaSummary(): object | null {
    return { a: legSummary(this.#near), b: legSummary(this.#far), mode: null }
  }

  protected pddMs(): number | null {
    return null
  }

  #runApplication(): void {
    const entry = applicationEntry(this.#application, this.#parameters)
    this.#script = this.ctx.scripts.create(this.#host(this.#far), entry)
    this.#script.start()
  }

  #host(leg: Leg): ScriptHost {
    return answeredHost(this, leg, () => void this.end({ cause: 'script' }))
  }

  #nearListener(): LegListener {
    return {
      ...this.#ofWire(),
      digit: (_leg, digit, by) => {
        if (this.#whisper && !this.#whisper.done) this.#whisper.digit(digit, by)
        else this.#watcher.digit?.(digit, by)
      },
      media: (leg, event) => {
        this.mediaSample(leg, event)
        this.#whisper?.media(event)
      },
    }
  }

  #farListener(): LegListener {
    return {
      ...this.#ofWire(),
      digit: (_leg, digit, by) => this.#script?.digit(digit, by),
      media: (leg, event) => {
        this.mediaSample(leg, event)
        this.#script?.media(event)
      },
    }
  }

  /** A wire has no SIP: it cannot hang up, hold or transfer. */
  #ofWire(): Omit<LegListener, 'digit' | 'media'> {
    return {
      ended: () => void this.end({ cause: 'media_unavailable' }),
      refer: (_leg, request) => request.respond(603),
      notify: (_leg, request) => request.respond(481),
      measured: (leg, figures) => this.legMeasured(leg, figures),
      held: () => undefined,
      message: (_leg, request) => request.respond(405),
    }
  }
}

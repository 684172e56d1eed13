/** Models of the compatible form that leave the choice to the platform. */
const ANY = /^(default|phone_call|numbers_and_commands|experimental_(conversations|utterances))$/i
/** Models of the compatible form that begin with the name of a provider. */
const OF_A_PROVIDER = /^(deepgram|google(?:v2)?)_(.+)$/i

interface AskedModel {
  /** Null: the engine's default. */
  readonly model: string | null
  readonly warning?: string
}

/** Returns the model that a document asks of an engine, as the engine names it. */
export function askedModel(named: string | null, engine: string): AskedModel {
  if (named === null || ANY.test(named)) return { model: null }
  const [, of = engine, model = named] = OF_A_PROVIDER.exec(named) ?? []
  return of.toLowerCase() === engine ? { model } : { model: null, warning: unknownModel(named) }
}

export const unknownModel = (named: string): string =>
  `the speech model "${named}" is not one of the engine's, whose default serves instead`

/** Why an offer or answer is refused. `detail` names the fault. */
export interface SdpRefused<R extends string> {
  readonly refused: R
  readonly detail: string
}

export const refuseSdp = <R extends string>(refused: R, detail: string): SdpRefused<R> => ({ refused, detail })

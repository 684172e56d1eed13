/** The codecs that a trunk may have, as choices of a form. */
export const CODECS = ['PCMA', 'PCMU', 'G722', 'OPUS', 'G729'].map(value => ({ value, text: value }))

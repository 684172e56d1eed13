declare module '*.svg' {
  const href: string
  export default href
}
declare module '*.css' {}
declare module 'qrcode' {
  /** The squares of a QR code, row by row; 1 is dark. */
  interface Modules {
    readonly size: number
    readonly data: Uint8Array
  }
  export function create(
    text: string,
    options: { readonly errorCorrectionLevel: 'L' | 'M' | 'Q' | 'H' },
  ): { readonly modules: Modules }
}

declare module 'lucide/dist/esm/icons/*.mjs' {
  /** The icon as the data of one path, which scripts/console.mjs makes of its shapes. */
  const path: string
  export default path
}

/** Of the atlas, scripts/console.mjs gives the outlines of the countries. */
declare module 'world-atlas/countries-110m.json' {
  const world: {
    readonly width: number
    readonly height: number
    /** ISO 3166 code, or null for land without one, and the path of an SVG. */
    readonly shapes: readonly (readonly [iso_code: string | null, path: string])[]
  }
  export default world
}

/** The suite of links between machines. Its key proves both ends, so there are no certificates. */
export const MACHINE_TLS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

// The settings of the bus between the nodes of a cluster.
import { z } from 'zod'
import { BUS_MAX_AGE_MS_DEFAULT, BUS_MAX_MB_DEFAULT } from '../cluster/limits.ts'
import { DAY_MS } from '../lib/time.ts'
import { busName, busUser, natsUrl, publicUrl, secret, setting, wholeNumber } from './setting.ts'

export const BUS_SETTINGS = {
  bus: setting(
    'bus',
    '',
    natsUrl,
    'NATS server with JetStream that connects writer and readers, such as nats://127.0.0.1:4222; several, comma-separated',
  ),
  busName: setting('bus-name', 'mintlake', busName, 'Beginning of the names on the bus'),
  busUser: setting(
    'bus-user',
    '',
    busUser,
    'User of this process at NATS; its replies come to _INBOX.<user>',
  ),
  busPassword: secret('BUS_PASSWORD', 'Password of --bus-user'),
  busCredentials: setting('bus-credentials', '', z.string(), 'File with the credentials (.creds) for NATS'),
  busCa: setting('bus-ca', '', z.string(), 'File with the certificate authority of NATS, for TLS'),
  busCert: setting('bus-cert', '', z.string(), 'File with the certificate of this process for NATS'),
  busKey: setting('bus-key', '', z.string(), 'File with the private key of --bus-cert'),
  nodeUrl: setting(
    'node-url',
    '',
    publicUrl,
    'Address at which other nodes reach this one; without it that of --host and --port, where --host is every address the one that NATS sees',
  ),
  writerUrl: setting(
    'writer-url',
    '',
    publicUrl,
    'Address at which a reader reaches the writer; without it the one that the writer tells on the bus',
  ),
  busMaxAgeMs: setting(
    'bus-max-age-ms',
    BUS_MAX_AGE_MS_DEFAULT,
    wholeNumber(60_000, 7 * DAY_MS),
    'How long events stay on the bus, ms; a reader that was away longer begins with a checkpoint',
  ),
  busMaxMb: setting(
    'bus-max-mb',
    BUS_MAX_MB_DEFAULT,
    wholeNumber(1, 1e6),
    'Largest size of the events on the bus, MB; the oldest go first',
  ),
  busReplicas: setting('bus-replicas', 1, wholeNumber(1, 5), 'NATS servers that keep each event'),
} as const

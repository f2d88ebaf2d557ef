// Settings that went, and what took their place: one that is still given would silently do nothing.

const tookItsPlace = (flag: string): string => `${flag} took its place`

/** By flag, without the dashes, the end of the sentence that answers it. */
export const REPLACED: Readonly<Record<string, string>> = {
  'retain-training-days': tookItsPlace('--retain training=DAYS'),
  'retain-rejections-days': tookItsPlace('--retain rejections=DAYS'),
  'retain-bars-days': tookItsPlace('--retain bars=DAYS'),
  'retain-outcomes-days': tookItsPlace('--retain outcomes=DAYS'),
  'retain-trades-days': tookItsPlace('--retain trades=DAYSd'),
  'retain-trades-gb': tookItsPlace('--retain trades=SIZEgb'),
  'retain-trades-disk-pct': tookItsPlace('--retain trades=PERCENT%'),
  'retain-unasked-pct': tookItsPlace('--retain unasked=PERCENT%'),
  quiet: tookItsPlace('--log-level warn'),
  'log-format': 'the log is text on a terminal and JSON otherwise',
  'simulator-seed': tookItsPlace('--simulator seed=NUMBER'),
  'simulator-tokens': tookItsPlace('--simulator tokens=NUMBER'),
  'simulator-rate': tookItsPlace('--simulator rate=NUMBER'),
  'submit-rate': tookItsPlace('--submit-limits rate=NUMBER'),
  'submit-cooldown-ms': tookItsPlace('--submit-limits cooldown-ms=MS'),
  strikes: tookItsPlace('--submit-limits strikes=NUMBER'),
  standby: tookItsPlace('--role standby'),
  'bus-user': tookItsPlace('--bus-login user=NAME'),
  'bus-credentials': tookItsPlace('--bus-login credentials=FILE'),
  'bus-ca': tookItsPlace('--bus-tls ca=FILE'),
  'bus-cert': tookItsPlace('--bus-tls cert=FILE,key=FILE'),
  'bus-key': tookItsPlace('--bus-tls cert=FILE,key=FILE'),
  'bus-max-age-ms': tookItsPlace('--bus-stream max-age-ms=MS'),
  'bus-max-mb': tookItsPlace('--bus-stream max-mb=MB'),
  'bus-replicas': tookItsPlace('--bus-stream replicas=NUMBER'),
  'lag-max-ms': tookItsPlace('--reader lag-max-ms=MS'),
  'share-port': tookItsPlace('--reader share-port=true'),
  'writer-url': tookItsPlace('--reader writer-url=URL'),
  suspensions: tookItsPlace('--submit-limits suspensions=NUMBER'),
}

import { ask, dice, padding, percent } from '../model.mjs';

const limit = 8 * 1024;
const devices = 20;

// All devices send as much, over six days. Now and then somebody looks at a day of a device.
function readings(count, first) {
  const roll = dice(13);
  return Array.from({ length: count }, (_, i) => {
    const device = `device-${roll(devices)}`;
    const day = `2026-11-${first + Math.floor((i * 6) / count)}`;
    return i % 8 === 7 ? ask({ device, day }) : { create: { id: `r${first}-${i}`, device, day, value: padding(900) } };
  });
}

export default {
  title: 'IoT devices',
  async tell(model) {
    await model.start({ 'partition.ru_max': 2000, 'logical_partition.bytes_max': limit });
    const room = { partitions: 2, throughput: 4000 };
    model.say(`Devices send readings, and the device is the key: right for "what did this device measure". But all readings of one
      device, for all time, must fit one logical partition: 20 GB in the service, 8 KB in this model. A device that sends 1 KB
      every second is there after eight months.`);

    model.chapter('The mistake');
    const byDevice = await model.container('readings', '/device', room);
    const before = await model.rush('six days', byDevice, readings(240, 10), { perSecond: 120 });

    model.chapter('What is seen');
    model.say(`Devices are full. They are not too fast, so waiting does not help: 403, substatus 1014. Each is reported as large
      from 80 % of the limit on:`);
    const hot = await model.hot('readings', (key) => key.trouble === 'large');

    model.chapter('The advice');
    const advice = await model.advise('readings');

    model.chapter('The cure');
    model.say(`A hierarchical key: the device, and within it the day. The limit now holds for a device's day, and a query for a
      device alone still asks only the partitions that have it.`);
    const byDay = await model.container('readings2', ['/device', '/day'], room);
    const copied = await model.copy('readings', 'readings2');
    const after = await model.rush('the next six days', byDay, readings(240, 16), { perSecond: 120 });
    const ofOne = ({ create }) => create?.device === 'device-7';
    const counted = await model.count('readings2', "WHERE c.device = 'device-7'");
    const written = before.only(ofOne).accepted + after.only(ofOne).accepted;
    model.say(`Refused as too much before: ${percent(before.full / before.offered)}. After: ${percent(after.full / after.offered)}. Of
      device-7 alone there are ${counted} readings, over several days.`);
    const reported = { key: hot.partitionKey, do: hot.do };
    return { before: before.figures(), after: after.figures(), copied, hot: reported, advice, counted, written };
  },
};

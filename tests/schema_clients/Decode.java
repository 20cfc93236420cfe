// Decodes with Apicurio's deserialiser of Avro, as a consumer of Kafka does. Reads lines from the standard input (topic,
// `key` or `value`, bytes in hexadecimal digits, by tabs) and answers each with the value as JSON in the form of
// `canonical.py`, or with `!` and the error.
//
//     Decode.java URL_OF_THE_REGISTRYS_OWN_API

import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.avro.Conversions;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericEnumSymbol;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.GenericRecord;

public class Decode {
    static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSS");
    static final DateTimeFormatter MOMENT = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS");

    public static void main(String[] arguments) throws Exception {
        for (var conversion : new org.apache.avro.Conversion<?>[] {
                new Conversions.DecimalConversion(), new Conversions.UUIDConversion(),
                new TimeConversions.DateConversion(), new TimeConversions.TimeMillisConversion(),
                new TimeConversions.TimeMicrosConversion(), new TimeConversions.TimestampMillisConversion(),
                new TimeConversions.TimestampMicrosConversion(), new TimeConversions.LocalTimestampMillisConversion(),
                new TimeConversions.LocalTimestampMicrosConversion()})
            GenericData.get().addLogicalTypeConversion(conversion);
        var values = new AvroKafkaDeserializer<Object>();
        values.configure(Map.of("apicurio.registry.url", arguments[0]), false);
        var keys = new AvroKafkaDeserializer<Object>();
        keys.configure(Map.of("apicurio.registry.url", arguments[0]), true);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t");
            String answer;
            try {
                var bytes = HexFormat.of().parseHex(parts[2]);
                answer = canonical((parts[1].equals("key") ? keys : values).deserialize(parts[0], bytes));
            } catch (Exception fault) {
                answer = "!" + fault.toString().replace('\n', ' ');
            }
            System.out.write((answer + "\n").getBytes(StandardCharsets.UTF_8));
        }
        System.out.flush();
        System.exit(0);  // its client of the registry keeps threads
    }

    static String canonical(Object value) {
        if (value == null) return "null";
        if (value instanceof Boolean || value instanceof Integer || value instanceof Long) return value.toString();
        if (value instanceof Float number) return floating(number.doubleValue());
        if (value instanceof Double number) return floating(number);
        if (value instanceof ByteBuffer bytes) {
            byte[] copy = new byte[bytes.remaining()];
            bytes.duplicate().get(copy);
            return tagged("bytes", HexFormat.of().formatHex(copy));
        }
        if (value instanceof GenericFixed bytes) return tagged("bytes", HexFormat.of().formatHex(bytes.bytes()));
        if (value instanceof BigDecimal number) return tagged("decimal", number.toPlainString());
        if (value instanceof LocalDate date) return tagged("date", date.toString());
        if (value instanceof LocalTime time) return tagged("time", TIME.format(time));
        if (value instanceof Instant moment)
            return tagged("instant", MOMENT.format(LocalDateTime.ofInstant(moment, ZoneOffset.UTC)));
        if (value instanceof LocalDateTime moment) return tagged("local", MOMENT.format(moment));
        if (value instanceof UUID identifier) return tagged("uuid", identifier.toString());
        if (value instanceof CharSequence || value instanceof GenericEnumSymbol) return quoted(value.toString());
        var members = new StringBuilder();
        if (value instanceof Collection<?> items) {
            for (Object item : items)
                members.append(members.length() == 0 ? "" : ",").append(canonical(item));
            return "[" + members + "]";
        }
        var sorted = new TreeMap<String, Object>();
        if (value instanceof GenericRecord record) {
            for (var field : record.getSchema().getFields())
                sorted.put(field.name(), record.get(field.pos()));
        } else {
            for (var entry : ((Map<?, ?>) value).entrySet())
                sorted.put(entry.getKey().toString(), entry.getValue());
        }
        for (var entry : sorted.entrySet())
            members.append(members.length() == 0 ? "" : ",")
                .append(quoted(entry.getKey())).append(":").append(canonical(entry.getValue()));
        return "{" + members + "}";
    }

    static String floating(double number) {
        return tagged("float", Double.isNaN(number) ? "nan" : String.format("%016x", Double.doubleToLongBits(number)));
    }

    static String tagged(String name, String text) {
        return "{\"" + name + "\":" + quoted(text) + "}";
    }

    static String quoted(String text) {
        var out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}

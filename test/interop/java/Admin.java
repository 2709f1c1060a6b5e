import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** Runs mqadmin commands read from standard input, one a line (tab between words), in one JVM. Ends each with a line "#done". */
public class Admin {
    public static void main(String[] args) throws Exception {
        System.out.println("#ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            MQAdminStartup.main0(line.split("\t"), null);
            System.out.println("\n#done"); // some commands end without a line break
        }
        System.exit(0);
    }
}
